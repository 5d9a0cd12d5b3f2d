"""Findings: for every rule a group that has the problem."""

from dataclasses import replace

import pytest

from assignor.inspection.findings import RULES
from assignor.inspection.group import inspect_group
from assignor.inspection.values import ClusterFacts
from encoding import NativeAssignment, NativeSubscription, TaskId, TopicPartition
from encoding.native import ReachedRow
from tests.assignor.inspection.described_groups import FACTS, assignment_bytes, group_of, member

T00, T01, T10 = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)


def sentence(look, kind):
    return " / ".join(finding.sentence for finding in look.findings if finding.kind == kind)


EXAMPLES = {
    "unreadable": (
        group_of(replace(member("a", active=[T00, T01]), metadata=b"\0")),
        "ends in version",
    ),
    "cannot-read": (
        group_of(member("a", used=9, supported=9, active=[T00, T01], answer={"version": 11})),
        "a was given an assignment in version 11 and reads up to 9: its program ends",
    ),
    "error": (
        group_of(member("a", answer={"error_code": 1})),
        "error 1 (INCOMPLETE_SOURCE_TOPIC_METADATA) to a",
    ),
    "shutdown": (
        group_of(member("a", active=[T00, T01], error_code=4)),
        "a asks the whole application to stop",
    ),
    "owned-twice": (
        group_of(member("a", active=[T00, T01]), member("b", active=[T00])),
        "task 0_0 runs on more than one process",
    ),
    "not-owned": (group_of(member("a", active=[T00])), "task 0_1 runs nowhere"),
    "no-task": (group_of(member("a")), "no task runs"),
    "source-topic": (
        group_of(member("a", active=[T00, T01], topics=("in", "gone"))),
        "subscribed topic gone does not exist, or you may not describe it: tasks that read it",
    ),
    "holds-version": (
        group_of(member("a", used=4, supported=4, consumer=0, active=[T00, T01]), member("b")),
        "a limits the group to version 4",
    ),
    "before-probing": (
        group_of(member("a", used=2, supported=-1, active=[T00, T01])),
        "while a writes a version below 3",
    ),
    "record-size": (
        group_of(member("a", active=[T00, T01], client_tags={"k": "v" * 900_000})),
        "of 1,000,000 bytes",
    ),
    "standby-beside-active": (
        group_of(member("a", active=[T00, T01], standby=[T00])),
        "task 0_0 has its standby on the process that runs it",
    ),
    "below-share": (
        group_of(member("a", active=[T00, T01]), member("b", standby=[T01])),
        "b runs 0 of its share of 1 stateful tasks: 1 copy is there or on the way",
    ),
    "stalled-warm-up": (
        group_of(
            member("a", active=[T00]),
            member(
                "b", active=[T01], standby=[T00],
                answer={"native": NativeAssignment(warmup_tasks=(T00,))},
            ),
        ),
        "b warms up 1 copy (0_0), and the leader schedules no follow-up rebalance: these tasks",
    ),
    "topics-differ": (
        group_of(member("a", active=[T00, T01]), member("b", topics=("in", "more"))),
        "2 sets of topics",
    ),
    "topology-waits": (None, ""),
    "topology-reached": (
        group_of(
            member(
                "a", active=[T00], native=NativeSubscription(fingerprint=bytes(8)),
                answer={"native": NativeAssignment(
                    reached_versions=(ReachedRow(bytes(8), epoch=3, version=2),),
                )},
            ),
        ),
        "version 2 of the topology was reached in epoch 3, and no member carries it",
    ),
    "topology-lowered": (None, ""),
    "topology-differs": (
        group_of(
            *(
                member(
                    name, process=number, active=[task],
                    native=NativeSubscription(fingerprint=bytes([number] * 8)),
                )
                for number, (name, task) in enumerate((("a", T00), ("b", T01)), 1)
            )
        ),
        "2 different topologies",
    ),
    "process-id-twice": (
        group_of(
            member("a", process=1, active=[T00]),
            member("b", process=1, active=[T01], host="10.0.0.2"),
        ),
        "comes from 10.0.0.1, 10.0.0.2",
    ),
    "host-map": (
        group_of(
            member("a", active=[T00], user_endpoint="a:1"),
            member("b", active=[T01]),
        ),
        "b has no application.server",
    ),
    "partition-counts": (None, ""),
    "beyond-end": (None, ""),
    "before-start": (None, ""),
    "uncommitted": (
        group_of(
            member("a", active=[T00, T01, T10], inputs="in"),
        ),
        "in-2 has records",
    ),
    "not-read": (None, ""),
    "not-shown": (None, ""),
    "not-told": (None, ""),
}  # fmt: skip


def test_every_rule_has_an_example():
    assert list(EXAMPLES) == [kind for kind, _ in RULES]


@pytest.mark.parametrize("kind", [kind for kind, (group, _) in EXAMPLES.items() if group])
def test_every_finding_has_a_sentence(kind):
    group, expected = EXAMPLES[kind]
    facts = replace(FACTS, has_topics=True)
    if kind == "uncommitted":
        third = TopicPartition("in", 2)
        facts = replace(FACTS, end_offsets={**FACTS.end_offsets, third: 3})
        group = group_of(
            replace(
                group.members[0],
                assignment=assignment_bytes(b"", [*FACTS.committed, third]),
            )
        )
    look = inspect_group(group, facts)
    assert expected in sentence(look, kind)


def test_a_topic_is_missing_only_if_the_cluster_was_asked_and_told():
    group = group_of(member("a", active=[T00, T01], topics=("in", "gone")))
    assert inspect_group(group, FACTS).findings == ()
    look = inspect_group(group_of(member("a", active=[T00, T01])), replace(FACTS, has_topics=True))
    assert look.findings == ()


def test_a_group_without_its_only_topic_says_so_and_that_no_task_runs():
    look = inspect_group(group_of(member("a")), ClusterFacts(has_topics=True))
    assert [finding.kind for finding in look.findings] == ["no-task", "source-topic"]
    rebalances = group_of(member("a"), state="CompletingRebalance")
    assert sentence(inspect_group(rebalances, ClusterFacts()), "no-task") == ""


def test_what_may_not_be_asked_is_reported():
    look = inspect_group(
        group_of(member("a", active=[T00])), ClusterFacts(unknown=("not authorized to show it",))
    )
    assert sentence(look, "not-told") == "not authorized to show it"
    assert look.lag is None
    assert not look.limit_known


def test_hosts_that_are_shared_odd_or_wrong_are_holes():
    shared = group_of(
        member("a", active=[T00], user_endpoint="h:1"),
        member("b", active=[T01], user_endpoint="h:1"),
    )
    assert (
        "h:1 is the application.server of several processes"
        in inspect_group(shared, FACTS).host_map_holes
    )
    odd = group_of(member("a", active=[T00, T01], user_endpoint="nowhere"))
    assert inspect_group(odd, FACTS).host_map_holes == (
        "application.server 'nowhere' is not of the form host:port",
    )
    wrong = {("b", 1): [TopicPartition("in", 0)]}
    stale = group_of(
        member("a", active=[T00, T01], user_endpoint="a:1", answer={"partitions_by_host": wrong})
    )
    assert inspect_group(stale, FACTS).host_map_holes == (
        "b:1 is in the host map, but no member has this application.server",
        "queries for in-0, in-1 do not reach the member that runs it",
    )


def test_only_versions_below_3_cannot_be_probed():
    look = inspect_group(
        group_of(member("a", used=3, supported=3, consumer=0, active=[T00, T01])), FACTS
    )
    assert look.findings == ()


@pytest.mark.parametrize(
    ("native", "cause"),
    [
        (None, "a leader before 2.6, or with StickyTask"),
        (NativeSubscription(), "log has a warning if copies"),
    ],
    ids=["JVM", "native"],
)
def test_a_client_below_its_share_has_causes_that_its_leader_can_have(native, cause):
    owner = member("a", active=[T00, T01], sums=[(T00, 5)], native=native)
    look = inspect_group(group_of(owner, member("b", native=native)), FACTS)
    assert sentence(look, "below-share").startswith(
        "b runs 0 of its share of 1 stateful tasks: no copy warms up on it; "
    )
    assert cause in sentence(look, "below-share")


def test_a_standby_of_a_native_client_below_its_share_is_a_copy_that_is_there():
    native, answer = NativeSubscription(), {"native": NativeAssignment(warmup_tasks=())}
    owner = member("a", active=[T00, T01], native=native, answer=answer)
    look = inspect_group(
        group_of(owner, member("b", standby=[T01], native=native, answer=answer)), FACTS
    )
    assert "stateful tasks: 1 copy is there or on the way" in sentence(look, "below-share")
