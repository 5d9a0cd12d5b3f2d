"""The topology of a Quix application."""

import pytest

from assignor import TopologyError
from assignor.integrations.quix.topology import quix_topology
from system_tests.broker import BrokerConfig, running_broker


@pytest.fixture(scope="module")
def broker(clock):
    """A broker for all tests here, which only ask it for topics."""
    with running_broker(BrokerConfig(topics={"words": 4, "other": 4, "counts": 4})) as running:
        yield running


def parts(app):
    return quix_topology(app).subtopologies("app")


def stateful(dataframe):
    return dataframe.apply(lambda value, _: value, stateful=True)


def test_a_store_has_the_changelog_that_quix_named(counting):
    (only,) = parts(counting())
    assert only.source_topics == ("words",)
    assert only.changelog_topics == ("changelog__app--words--default",)
    assert quix_topology(counting()).store_topics("words/default", "app") == ("words",)


def test_a_window_has_a_changelog_of_its_own(application):
    app = application()
    words = app.dataframe(app.topic("words"))
    words.tumbling_window(1000).count().final()
    (only,) = parts(app)
    assert only.changelog_topics == ("changelog__app--words--tumbling_window_1000_count",)


def test_dataframes_that_are_not_connected_are_subtopologies(application):
    app = application()
    stateful(app.dataframe(app.topic("words")))
    app.dataframe(app.topic("other"))
    first, second = parts(app)
    assert (first.source_topics, first.changelog_topics) == (("other",), ())
    assert (second.source_topics, second.changelog_topics) == (
        ("words",),
        ("changelog__app--words--default",),
    )


def test_topics_that_are_joined_are_one_subtopology(application):
    app = application()
    words, other = (app.dataframe(app.topic(name)) for name in ("words", "other"))
    stateful(words.concat(other))
    (only,) = parts(app)
    assert only.source_topics == ("other", "words")
    assert only.copartition_groups == (("other", "words"),)
    assert only.changelog_topics == ("changelog__app--other--words--default",)


def test_a_repartition_topic_is_an_input_that_quix_creates(application):
    app = application()
    stateful(app.dataframe(app.topic("words")).group_by("word"))
    first, second = parts(app)
    assert first.source_topics == ("repartition__app--words--word",)
    assert second.source_topics == ("words",)
    assert first.repartition_topics == ()
    assert len(first.changelog_topics) == 1


def test_without_changelogs_no_task_has_state_that_could_move(counting):
    (only,) = parts(counting(use_changelog_topics=False))
    assert not only.is_stateful


def test_an_application_without_a_dataframe_is_refused(application):
    with pytest.raises(TopologyError, match="consumes no topic; create its dataframes before"):
        quix_topology(application())
