"""The topics and lost positions of one consumer."""

from uuid import UUID

import pytest

from assignor.embedding.loops import InputWatch
from encoding import TopicPartition

IN = TopicPartition("in", 0)
OLD, NEW = UUID(int=1), UUID(int=2)


def test_a_topic_made_anew_is_found_until_it_is_settled(caplog):
    watch, other = InputWatch("latest"), TopicPartition("other", 0)
    assert watch.look({"in": OLD, "other": OLD}, [IN, other], 0.0) == []
    assert watch.look({"in": None, "other": OLD}, [IN, other], 0.0) == []  # it is deleted
    assert watch.look({"in": NEW, "other": OLD}, [IN, other], 0.0) == [IN]
    assert watch.look({"in": NEW, "other": OLD}, [IN, other], 0.0) == [IN]
    assert watch.settle({IN: 7}, {IN: (0, 99)}, {"in": NEW}) == {IN: 0}
    assert "made anew" in caplog.text
    assert watch.look({"in": NEW, "other": OLD}, [IN, other], 0.0) == []


def test_a_topic_made_anew_is_one_warning_whatever_its_number_of_partitions(caplog):
    caplog.set_level("INFO")
    watch, partitions = InputWatch("latest"), [TopicPartition("in", number) for number in range(4)]
    for before, after in ((OLD, NEW), (NEW, UUID(int=3))):
        watch.look({"in": before}, partitions, 0.0)
        watch.settle(dict.fromkeys(partitions, 7), dict.fromkeys(partitions, (0, 9)), {"in": after})
    assert [each.levelname for each in caplog.records] == 2 * (["WARNING"] + 3 * ["INFO"])


def test_a_topic_that_was_made_anew_while_it_was_not_assigned_goes_on_where_the_group_is(
    caplog,
):
    watch = InputWatch("earliest")
    watch.look({"in": OLD}, [IN], 0.0)
    watch.look({}, [], 0.0)
    assert watch.look({"in": NEW}, [IN], 0.0) == [IN]
    assert watch.settle({IN: 7}, {IN: (0, 99)}, {"in": NEW}) == {IN: 7}
    assert "made anew since this member last read it" in caplog.text
    # The next time it is not released.
    assert watch.look({"in": OLD}, [IN], 0.0) == [IN]
    assert watch.settle({IN: 7}, {IN: (0, 99)}, {"in": OLD}) == {IN: 0}


def test_a_topic_that_comes_back_as_it_was_is_not_compared_as_released():
    watch = InputWatch("earliest")
    for ids, assigned in (({"in": OLD}, [IN]), ({}, []), ({"in": OLD}, [IN])):
        assert watch.look(ids, assigned, 0.0) == []
    assert watch.look({"in": NEW}, [IN], 0.0) == [IN]
    assert watch.settle({IN: 7}, {IN: (0, 99)}, {"in": NEW}) == {IN: 0}


def test_the_question_of_a_commit_notes_nothing():
    watch = InputWatch("earliest")
    assert watch.made_anew({"in": OLD}, [IN]) == []
    assert watch.topic_ids == {}
    assert watch.look({"in": NEW}, [IN], 0.0) == []
    assert watch.topic_ids == {"in": NEW}


@pytest.mark.parametrize(
    ("reset", "resets"), [("earliest", True), ("latest", True), ("none", False), ("x", False)]
)
def test_only_known_policies_are_done_here(reset, resets):
    assert InputWatch(reset).resets is resets
