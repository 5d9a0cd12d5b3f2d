"""Inspection of captured groups of real members, and of constructed groups with problems."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.inspection.group import group_topics, inspect_group, is_present, is_settling
from assignor.inspection.values import (
    ClusterFacts,
    DescribedGroup,
    DescribedMember,
    TopicFacts,
)
from encoding import (
    NO_REBALANCE,
    UNKNOWN_OFFSET_SUM,
    Assignment,
    TaskId,
    TopicPartition,
    encode_assignment,
)
from tests.assignor.inspection.described_groups import (
    FACTS,
    assignment_bytes,
    captured,
    group_of,
    member,
    metadata_bytes,
)
from tests.versions import LAST_WITH_11, LATER

T00, T01, T10, T11 = (TaskId(s, p) for s in (0, 1) for p in (0, 1))


def kinds(look):
    return [finding.kind for finding in look.findings]


def names(tasks):
    return [str(task) for task in tasks]


# Captured


def test_two_jvm_members_of_a_release():
    look = inspect_group(*captured("two-3.9.1"))
    assert look.is_streams
    assert look.summary.endswith("with 2 members, Stable")
    assert [member_look.evidence.spelled for member_look in look.members] == [
        f"3.4.0-{LAST_WITH_11}"
    ] * 2
    assert look.versions.sentence == "version 11, the highest that all members support"
    assert look.versions.holders == look.findings == ()
    assert look.leader.candidates == ("jvm0", "jvm1")
    assert not look.leader.known
    assert look.lag == 11
    assert look.limit_known
    assert look.next_rebalance_ms == NO_REBALANCE


def test_tasks_inputs_and_copies_are_those_of_the_application():
    look = inspect_group(*captured("two-3.9.1"))
    group_id = look.described.group_id
    assert look.shape.sources == {
        0: (f"{group_id}-words",),
        1: (f"{group_id}-counts-repartition",),
    }
    assert look.shape.changelogs == {1: (f"{group_id}-counts-changelog",)}
    jvm0, jvm1 = look.clients
    assert names(jvm0.active) == ["0_1", "0_3", "1_1", "1_3"]
    assert names(jvm0.standby) == names(jvm1.active)[2:] == ["1_0", "1_2"]
    assert jvm0.warmup is None
    # It joined with empty stores; these were the end offsets at the capture.
    assert {str(task): lag for task, lag in jvm1.state_lags.items()} == {"1_1": 104, "1_3": 209}
    assert [
        (entry.lag, entry.end_sum, len(entry.owners), len(entry.standbys)) for entry in look.tasks
    ] == [
        *((lag, None, 1, 0) for lag in (1, 3, 2, 2)),
        *((lag, end, 1, 1) for lag, end in ((0, 210), (1, 104), (0, 209), (2, 209))),
    ]


def test_an_old_pin_is_named_with_its_values():
    look = inspect_group(*captured("pinned-2.3.1"))
    assert look.versions.in_force == 2
    assert look.versions.possible == 11
    (holder,) = look.versions.holders
    assert (holder.client, holder.version, holder.kind) == ("old", 2, "pin or old program")
    assert "upgrade.from is set on it, to 0.10.1, 0.10.2, 0.11.0, 1.0 or 1.1" in holder.why
    assert "remove upgrade.from from" in holder.remedy
    assert kinds(look) == ["holds-version", "before-probing"]
    assert look.leader.candidates == ("jvm0", "jvm1")
    assert "a JVM member leads" in look.leader.why


def test_an_old_program_is_named_with_its_releases():
    look = inspect_group(*captured("old-2.3.1"))
    assert look.versions.sentence == ("version 4 instead of 11, limited by old")
    (holder,) = look.versions.holders
    assert holder.kind == "old program"
    assert holder.why == "it reads no version above 4: its program is of 2.1.0 to 2.3.1"
    assert holder.remedy == "upgrade its program"
    assert look.leader.known
    assert look.leader.candidates == ("ours",)


def test_native_members_read_each_other_beside_jvm_members():
    look = inspect_group(*captured("two-3.9.1-and-native"))
    native = look.members[-1]
    assert (native.used, native.supported, native.native) == (11, 11, 101)
    assert native.fingerprint
    assert look.versions.holders == ()
    assert look.versions.sentence == (
        "version 11, the highest of the JVM members; native members add a trailer"
    )


def test_a_native_group_on_its_way_up():
    look = inspect_group(*captured("natives"))
    assert [
        (member_look.used, member_look.answer.version, member_look.answer.next_version)
        for member_look in look.members
    ] == [
        (101, 101, 101),
        (101, 101, 101),
        (11, 11, 101),
    ]
    assert look.versions.sentence == (
        "version 11; becomes 101 at the next rebalance; no action needed"
    )
    assert look.leader.candidates == ("a", "b", "c")
    assert [client.warmup for client in look.clients] == [(), (), ()]
    # Answers at 101 name tasks without their partitions; the partitions are still shown.
    group_id = look.described.group_id
    assert look.shape.sources == {
        0: (f"{group_id}-words",),
        1: (f"{group_id}-counts-repartition",),
    }
    assert look.findings == ()


@pytest.mark.parametrize(
    "name", ["two-3.9.1", "two-3.9.1-and-native", "pinned-2.3.1", "old-2.3.1", "natives"]
)
def test_real_host_maps_have_no_holes_and_a_lost_host_is_one(name):
    group, facts = captured(name)
    assert inspect_group(group, facts).host_map_holes == ()
    look = inspect_group(replace(group, members=group.members[1:]), facts)
    assert any("no member has this application.server" in hole for hole in look.host_map_holes)
    assert "not-owned" in kinds(look)


def test_topics_of_a_group_are_what_it_reads_and_its_changelogs():
    group, _ = captured("two-3.9.1")
    own = [f"{group.group_id}-{name}" for name in ("words", "counts-repartition")]
    changelog = f"{group.group_id}-counts-changelog"
    names = [*own, changelog, f"{group.group_id}-out", "other", "other-counts-changelog"]
    assert group_topics(group, names) == {*own, changelog}


# Made


def test_a_healthy_group_has_no_findings():
    look = inspect_group(
        group_of(member("a", active=[T00]), member("b", active=[T01], standby=[])), FACTS
    )
    assert look.findings == ()
    assert look.lag == 10


def test_threads_of_a_process_are_one_client():
    first = member("a", process=1, active=[T00])
    other = member("a", process=1, active=[T01], thread=2)
    look = inspect_group(group_of(first, other), FACTS)
    (client,) = look.clients
    assert names(client.active) == ["0_0", "0_1"]
    assert look.leader.candidates == ("a StreamThread-1", "a StreamThread-2")


def test_the_next_rebalance_is_the_earliest_that_was_asked_for():
    look = inspect_group(
        group_of(
            member("a", active=[T00], answer={"next_rebalance_ms": 5000}),
            member("b", active=[T01], answer={"next_rebalance_ms": 4000}),
        ),
        FACTS,
    )
    assert look.next_rebalance_ms == 4000


def test_offsets_of_copies_are_held_against_the_ends_of_their_changelog():
    facts = replace(
        FACTS,
        topics={**FACTS.topics, "app-store-changelog": TopicFacts(partitions=2)},
        end_offsets={**FACTS.end_offsets, TopicPartition("app-store-changelog", 0): 100,
                     TopicPartition("app-store-changelog", 1): 60},
    )  # fmt: skip
    sums = {T00: 70, T01: UNKNOWN_OFFSET_SUM}
    look = inspect_group(
        group_of(member("a", active=[T00, T01]), member("b", standby=[T00, T01], sums=sums)),
        facts,
    )
    assert look.shape.changelogs == {0: ("app-store-changelog",)}
    assert look.clients[1].state_lags == {T00: 30, T01: None}


def test_a_changelog_that_matches_several_subtopologies_is_assigned_to_none():
    topics = {name: TopicFacts(partitions=2) for name in ("in", "in2", "app-store-changelog")}
    look = inspect_group(
        group_of(
            member("a", active=[T00, T01]),
            member("b", active=[T10, T11], inputs="in2", topics=("in",)),
        ),
        replace(FACTS, topics=topics),
    )
    assert look.shape.changelogs == {}
    assert look.shape.loose_changelogs == ("app-store-changelog",)
    assert kinds(look) == ["not-shown"]


# Other groups, and none


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"state": "Dead", "members": ()}, "is not known to the cluster, or was deleted"),
        ({"state": "Empty", "members": ()}, "has no members now; its state is Empty"),
        ({"protocol_type": "connect"}, "is not a consumer group; its type is 'connect'"),
        (
            {"state": "PreparingRebalance", "protocol_name": ""},
            "with 1 member rebalances (PreparingRebalance)",
        ),
        ({"protocol_name": "range"}, "is not a Streams group: its assignor is range"),
        (
            {"state": "Stable", "members": (), "group_type": "streams"},
            "is of the broker-side streams protocol (KIP-1071)",
        ),
        (
            {"state": "Dead", "members": (), "group_type": "consumer"},
            "use kafka-consumer-groups.sh --describe",
        ),
    ],
)
def test_other_groups_are_one_sentence(changes, sentence):
    look = inspect_group(group_of(member("a", active=[T00]), **changes))
    assert sentence in look.summary
    assert not look.is_streams
    assert look.clients == look.findings == ()


def test_a_stock_group_shows_topics_partitions_and_lag():
    stock = DescribedMember(
        member_id="consumer-1",
        client_id="consumer",
        metadata=metadata_bytes(b"", topics=("in",), version=1),
        assignment=assignment_bytes(b"", list(FACTS.committed)),
    )
    look = inspect_group(group_of(stock, protocol_name="cooperative-sticky"), FACTS)
    (member_look,) = look.members
    assert member_look.topics == ("in",)
    assert member_look.answer.partitions == tuple(sorted(FACTS.committed))
    assert (look.lag, look.versions, look.leader) == (10, None, None)


def test_presence_and_settling_go_by_the_state():
    assert is_present(DescribedGroup(group_id="g", state="Empty"))
    assert not is_present(DescribedGroup(group_id="g", state="Dead"))
    assert is_present(DescribedGroup(group_id="g", state="Dead", group_type="streams"))
    assert is_settling(DescribedGroup(group_id="g", state="CompletingRebalance"))
    assert not is_settling(DescribedGroup(group_id="g", state="Stable"))


@given(metadata=st.binary(max_size=80), assignment=st.binary(max_size=80), whole=st.booleans())
def test_no_bytes_of_a_member_stop_the_look(metadata, assignment, whole):
    broken = replace(
        member("bad"),
        metadata=metadata_bytes(metadata) if whole else metadata,
        assignment=assignment_bytes(assignment) if whole else assignment,
    )
    look = inspect_group(group_of(broken, member("good", active=[T00, T01])), FACTS)
    assert len(look.members) == 2
    assert names(look.clients[-1].active) == ["0_0", "0_1"]


def test_a_future_member_is_its_two_numbers():
    future = replace(member("future"), metadata=metadata_bytes(2 * LATER.to_bytes(4)))
    look = inspect_group(group_of(future, member("now", active=[T00, T01])), FACTS)
    member_look = look.members[0]
    assert (member_look.used, member_look.supported, member_look.evidence.spelled) == (
        LATER,
        LATER,
        "unknown",
    )
    assert [holder.client for holder in look.versions.holders] == ["now"]


def native_member(name, number, active, partitions):
    """A member whose answer at 101 names its tasks without their partitions."""
    answer = Assignment(version=101, commonly_supported_version=101, active_tasks=tuple(active))
    given = assignment_bytes(encode_assignment(answer), partitions)
    return replace(member(name, process=number, topics=("x", "y")), assignment=given)


def test_partition_numbers_show_what_tasks_read_if_answers_do_not():
    x, y = ([TopicPartition(topic, number) for number in (0, 1)] for topic in "xy")
    first = native_member("a", 1, [T00, T10, T11], [x[0], y[0], y[1]])
    other = native_member("b", 2, [T01], [x[1]])
    look = inspect_group(group_of(first, other))
    assert look.shape.sources == {0: ("x",), 1: ("y",)}
    # With both partitions of every number, the mapping is ambiguous and is not shown.
    both = native_member("a", 1, [T00, T01, T10, T11], [*x, *y])
    open_ = inspect_group(group_of(both)).shape
    assert (open_.sources, open_.loose_topics) == ({}, ("x", "y"))


@pytest.mark.parametrize("facts", [FACTS, ClusterFacts()])
def test_a_task_number_out_of_all_proportion_makes_no_tasks_up(facts):
    huge = TaskId(0, 300_000)
    look = inspect_group(group_of(member("a", active=[T00]), member("h", active=[huge])), facts)
    assert len(look.tasks) <= 3
    assert {T00, huge} <= {entry.task for entry in look.tasks}


def test_a_few_tasks_that_nobody_runs_are_seen_by_their_numbers_alone():
    look = inspect_group(group_of(member("a", active=[TaskId(0, 5)])))
    assert [entry.task.partition for entry in look.tasks] == list(range(6))
