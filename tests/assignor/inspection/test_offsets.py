"""Groups without members, by their offsets and topics; offsets that do not fit the topics."""

from dataclasses import replace

import pytest

from assignor.inspection import ClusterFacts, TopicFacts, group_topics, inspect_group
from assignor.inspection.offsets import offsets_by_topic
from encoding import TaskId, TopicPartition
from tests.assignor.inspection.described_groups import FACTS, group_of, member

EMPTY = group_of(state="Empty", protocol_name="")
LOG = "app-counts-changelog"
SHUFFLE = "app-counts-repartition"


def facts(sizes, *, committed, starts=0, end=10):
    """Facts of topics by size; `committed`: topic -> its partitions with the committed offset 4."""
    ends = {TopicPartition(topic, n): end for topic, size in sizes.items() for n in range(size)}
    return ClusterFacts(
        topics={topic: TopicFacts(partitions=size) for topic, size in sizes.items()},
        has_topics=True,
        committed={
            TopicPartition(topic, n): 4 for topic, count in committed.items() for n in range(count)
        },
        start_offsets=dict.fromkeys(ends, starts),
        end_offsets=ends,
    )


def findings(look):
    return {finding.kind: finding.sentence for finding in look.findings}


def test_a_group_without_members_has_the_lag_of_its_committed_partitions():
    look = inspect_group(EMPTY, facts({"in": 4, LOG: 4}, committed={"in": 4}))
    assert (look.lag, look.findings) == (4 * 6, ())
    rows = [(row.topic, row.partitions, len(row.committed)) for row in offsets_by_topic(look)]
    assert rows == [(LOG, 4, 0), ("in", 4, 4)]


def test_a_topic_that_is_gone_is_named_and_has_no_lag():
    look = inspect_group(EMPTY, facts({"in": 1}, committed={"in": 1, "gone": 2}))
    assert look.lag == 6
    assert findings(look)["source-topic"].startswith("topic gone does not exist, or you may not")
    unread = replace(look.facts, topics={}, has_topics=False)
    assert "source-topic" not in findings(inspect_group(EMPTY, unread))


def test_partitions_that_were_added_are_found_by_the_internal_topics():
    sizes = {"in": 6, SHUFFLE: 4, LOG: 4}
    look = inspect_group(EMPTY, facts(sizes, committed={"in": 4, SHUFFLE: 4}, end=0))
    found = findings(look)["partition-counts"]
    assert found.startswith("in has 6 partitions, and the group has read those below 4 only")
    assert f"{SHUFFLE} (4)" in found
    assert LOG not in found, "it has as many partitions as the repartition topic that it counts"


def test_partitions_that_are_added_to_a_live_group_are_found_before_and_after_its_rebalance():
    known = facts({"in": 3, LOG: 2}, committed={"in": 2}, end=10)
    running = group_of(member("a", active=[TaskId(0, 0), TaskId(0, 1)]))
    look = inspect_group(running, known)
    found = findings(look)
    assert found["not-owned"] == "task 0_2 runs nowhere: partitions were added, see below"
    assert found["partition-counts"].startswith("in has 3 partitions, and the group has read those")
    assert f"{LOG} (2)" in found["partition-counts"]
    stopped = inspect_group(group_of(member("a")), known)
    assert stopped.lag == 2 * 6
    assert {"no-task", "partition-counts"} <= findings(stopped).keys()
    whole = inspect_group(running, facts({"in": 2, LOG: 2}, committed={"in": 2}))
    assert not {"not-owned", "partition-counts"} & findings(whole).keys()
    fewer = inspect_group(running, facts({"in": 1, LOG: 2}, committed={"in": 1}))
    assert "stop all members, and reset" in findings(fewer)["partition-counts"]


@pytest.mark.parametrize(
    ("sizes", "committed"),
    [
        ({"in": 6, SHUFFLE: 4, LOG: 4}, {"in": 6, SHUFFLE: 4}),
        ({"in": 6, "other": 4, SHUFFLE: 4}, {"in": 4, "other": 4}),
        ({"in": 6, SHUFFLE: 6, LOG: 6}, {"in": 4, SHUFFLE: 6}),
        ({"in": 6}, {"in": 4}),
    ],
    ids=["fixed by the program", "another source", "no record yet", "no internal topic"],
)
def test_other_numbers_of_partitions_are_no_finding(sizes, committed):
    assert "partition-counts" not in findings(
        inspect_group(EMPTY, facts(sizes, committed=committed))
    )


def test_a_topic_that_was_created_again_with_fewer_partitions():
    look = inspect_group(EMPTY, facts({"in": 2}, committed={"in": 4}))
    assert "has read partition 3: it was created again" in findings(look)["partition-counts"]


def test_offsets_beyond_the_end_and_before_the_first_record():
    beyond = inspect_group(EMPTY, facts({"in": 1}, committed={"in": 1}, end=2))
    assert beyond.lag == 0
    assert findings(beyond)["beyond-end"].startswith(
        "in-0 (4, end 2) has a committed offset beyond"
    )
    deleted = inspect_group(EMPTY, facts({"in": 2}, committed={"in": 2}, starts=7))
    assert findings(deleted)["before-start"].startswith(
        "in-0 (committed 4, first record 7), in-1 (committed 4, first record 7): 6 records were"
    )


def test_records_without_a_committed_offset_are_not_in_the_lag_and_named():
    look = inspect_group(EMPTY, facts({"in": 3}, committed={"in": 1}))
    assert look.lag == 6
    assert findings(look)["uncommitted"].startswith("in-1, in-2 has records, but the group has no")


def test_a_committed_topic_that_no_member_reads_is_a_note():
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    old = TopicPartition("old", 0)
    known = replace(
        FACTS,
        topics={**FACTS.topics, "old": TopicFacts(partitions=1)},
        committed={**FACTS.committed, old: 1},
        end_offsets={**FACTS.end_offsets, old: 9},
    )
    look = inspect_group(group_of(member("a", active=tasks)), known)
    assert findings(look)["not-read"].startswith("no member reads old, of which the group has")
    assert look.lag == 10
    assert "not-read" not in findings(inspect_group(group_of(member("a", active=tasks)), FACTS))


def test_internal_topics_of_a_group_with_a_longer_name_are_not_of_this_one():
    names = [LOG, SHUFFLE, "app-2-counts-changelog", "app-notes", "in"]
    join = "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic"
    assert group_topics(EMPTY, [*names, join], others=["app", "app-2"]) == {LOG, SHUFFLE, join}
