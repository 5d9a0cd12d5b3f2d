"""Tasks that run on no member: which members know it, and what their rebalance lines say."""

from uuid import UUID

import pytest

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from tests.assignor.adapters.members import (
    Coordinator,
    cluster,
    consumer_with,
    joined,
    on_the_wire,
)
from tests.assignor.embedding.clusters import CHANGELOG, Cluster, until

pytestmark = pytest.mark.usefixtures("clock")

COUNTED_WORDS = (
    Topology()
    .add_source("w", topics=["words"])
    .add_processor("c", parents=["w"])
    .add_state_store("counts", processors=["c"])
)
COUNTED_PAIRS = (
    Topology()
    .add_source("s", topics=["a", "b"])
    .add_processor("p", parents=["s"])
    .add_state_store("counts", processors=["p"])
    .copartition("a", "b")
)


@pytest.fixture
def member(caplog):
    caplog.set_level("INFO", logger="assignor.observe.log_lines")
    made = []

    def make(found, topology=COUNTED_WORDS):
        number = UUID(int=len(made) + 1)
        assignor = StreamsAssignor(topology, application_id="app", process_id=number)
        assignor.attach(consumer_with(Coordinator()))
        assignor._driver.watch_cluster(lambda: found)
        made.append(assignor)
        return assignor

    yield make
    for each in made:
        each.close()


def wait_for_queries(manager, count):
    """Request queries of the cluster, and wait until so many have begun and ended."""
    query, ended = manager._query, []

    def counted(retry_s):
        waits_s = query(retry_s)
        ended.append(waits_s)
        return waits_s

    manager._query = counted
    manager.join()
    until(lambda: len(ended) >= count)
    del manager._query


def rebalance(*assignors, **topics):
    """Run one generation, led by the first member, once each has looked at the cluster."""
    for each in assignors:
        wait_for_queries(each._driver.cluster._provider, 1)
    group = [joined(assignor, f"m{number}", *topics) for number, assignor in enumerate(assignors)]
    answers = assignors[0].assign(cluster(**topics), group)
    for number, assignor in enumerate(assignors):
        assignor.on_assignment(on_the_wire(answers[f"m{number}"]), 1)


def outcomes(caplog):
    lines = [each for each in caplog.records if "outcome=" in each.getMessage()]
    return [(each.levelname, each.getMessage().split()[1]) for each in lines]


def test_where_a_source_topic_has_grown_every_member_says_that_its_tasks_are_stopped(
    member, caplog
):
    caplog.set_level("INFO", logger="assignor")
    found = Cluster(words=2, **{CHANGELOG: 2})
    leader, follower = member(found), member(found)
    rebalance(leader, follower, words=2)
    assert leader.tasks.active
    assert follower.tasks.active
    assert (leader.stopped, follower.stopped) == ((), ())
    found.topics["words"] = 3
    caplog.clear()
    for _ in range(2):
        rebalance(leader, follower, words=3)
    assert not leader.tasks.active
    assert not follower.tasks.active
    for each in (leader, follower):
        [sentence] = each.stopped
        assert "app-counts-changelog has 2 partitions instead of 3" in sentence
        assert each.failed is None, (
            "the member keeps running, and its tasks run once it is corrected"
        )
    assert outcomes(caplog) == [("WARNING", "outcome=stopped")] * 4
    assert "no tasks in subtopology 0: the log has what to correct" in caplog.text
    reported = [each for each in caplog.records if sentence in each.getMessage()]
    assert [each.levelname for each in reported] == ["ERROR"] * 2, "once for each member"
    found.topics[CHANGELOG] = 3
    rebalance(leader, follower, words=3)
    assert (leader.stopped, follower.stopped) == ((), ())
    assert len(leader.tasks.active) + len(follower.tasks.active) == 3


def test_while_a_group_starts_its_tasks_wait(member, caplog):
    found = Cluster(words=2)
    leader = member(found)
    rebalance(leader, words=2)
    until(lambda: CHANGELOG in found.topics)
    assert outcomes(caplog) == [("INFO", "outcome=waiting")]
    assert leader.stopped == ()
    rebalance(leader, words=2)
    assert outcomes(caplog)[1] == ("INFO", "outcome=settled")


def test_topics_that_do_not_fit_are_named_once_and_no_query_has_failed(member, caplog):
    caplog.set_level("INFO", logger="assignor")
    found = Cluster(a=1, b=2)
    each = member(found, COUNTED_PAIRS)
    wait_for_queries(each._driver.cluster._provider, 2)
    [sentence] = each.stopped
    assert "a has 1, b has 2" in sentence
    assert [m for m in caplog.messages if "a has 1, b has 2" in m] == [sentence]
    assert "the cluster query failed" not in caplog.text
    found.topics["a"] = 2
    until(lambda: not each.stopped)
