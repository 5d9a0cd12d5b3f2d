"""Members that claim tasks of others do not block them for long."""

from dataclasses import replace

import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    assign_group,
)
from encoding import RUNNING, PartitionRange, TopicPartition
from probing import find_release
from tests.assignor.rebalance.groups import start
from tests.assignor.rebalance.leader.hostile import ALL, TASKS, settings, written


class Cooperative:
    """Honest cooperative members, one that claims arbitrary tasks, and a leader with memory."""

    def __init__(self, *, release="native", shown=True):
        self.members = {f"m{n}": start(release, number=n) for n in range(2)}
        self.shown = shown
        self.generation = 1
        self.claims = LeaderKnowledge().claims
        self.answer = None

    def honest(self, name):
        member = self.members[name]
        owned = tuple(sorted(p for inputs in member.held.active.values() for p in inputs))
        data = member.subscription(owned_partitions=owned, owned_generation=self.generation - 1)[1]
        return GroupMember(
            member_id=name, user_data=data, owned_partitions=owned if self.shown else None
        )

    def round(self, *extra, **knowledge):
        blobs = [self.honest(name) for name in sorted(self.members)]
        self.answer = assign_group(
            settings(),
            [*blobs, *extra],
            {"lines": 6},
            knowledge=LeaderKnowledge(
                claims=self.claims, generation=self.generation, leader_id="m0", **knowledge
            ),
        )
        self.claims = self.answer.claims
        assert self.answer.faults == ()
        for name, member in self.members.items():
            member_answer = self.answer.answers[name]
            member.receive(member_answer.partitions, member_answer.user_data, now_ms=0)
        self.generation += 1
        return self.answer

    def running(self):
        return sorted(t for member in self.members.values() for t in member.held.active)


def by_field(group):
    return written(start("3.9", number=9), "x", owned=ALL)


def by_field_first(group):
    return replace(written(start("3.9", number=9), "x", owned=ALL), member_id="a")


def by_generation(group):
    native = {
        "owned_partitions": (PartitionRange("lines", 0, 6),),
        "owned_generation": 2**31 - 1,
    }
    member = written(start(number=9), "x", native=native, sums=dict.fromkeys(TASKS, RUNNING))
    return replace(member, owned_partitions=None)


def by_the_right_generation(group):
    native = {
        "owned_partitions": (PartitionRange("lines", 0, 6),),
        "owned_generation": group.generation - 1,
    }
    member = written(start(number=9), "x", native=native, sums=dict.fromkeys(TASKS, RUNNING))
    return replace(member, owned_partitions=None)


def unreadable(group):
    return GroupMember(member_id="x", user_data=b"\0", owned_partitions=ALL)


CLAIMANTS = [by_field, by_field_first, by_generation, by_the_right_generation, unreadable]


@pytest.mark.parametrize("claimant", CLAIMANTS)
@pytest.mark.parametrize("before", [0, 2])
def test_who_claims_every_partition_in_every_round_starves_nobody_for_long(claimant, before):
    group = Cooperative()
    for _ in range(before):
        group.round()
    kept = []
    for _ in range(10):
        answer = group.round(claimant(group))
        given = {p for member_answer in answer.answers.values() for p in member_answer.partitions}
        kept.append(len(given))
    # Tasks of the claimant count as running: it is in the group and claims to run them.
    assert kept[-5:] == [6] * 5
    assert [w for w in answer.warnings if "claims" in w]
    name = claimant(group).member_id
    assert all(f"member {name}" in w for w in answer.warnings if "claims" in w)
    assert len(group.running()) >= 3
    assert answer.withheld == {}


def test_who_claims_on_is_asked_again_after_a_back_off_and_not_at_once():
    group = Cooperative()
    times = []
    for _ in range(4):
        answer = group.round(by_field_first(group), now_ms=50_000)
        times.append(
            {answer.answers[m].assignment.next_rebalance_ms for m in answer.withheld} - {0}
        )
    assert times[0] == set()
    assert times[1] == {51_000}
    assert times[2] == {52_000}
    assert times[3] == set()


def test_what_a_quarantined_member_keeps_is_asked_for_again_after_a_growing_back_off():
    group = Cooperative()
    waits = []
    for _ in range(3):
        answer = group.round(unreadable(group), now_ms=50_000)
        waits.append(answer.answers["m0"].assignment.next_rebalance_ms - 50_000)
    assert waits == [1_000, 1_000, 2_000]


def test_an_owner_that_needs_two_rebalances_to_give_up_is_still_waited_for():
    group = Cooperative()
    group.members.pop("m1")
    group.round()
    group.members["m1"] = start(number=1)
    late = group.honest("m0")
    for _ in range(2):
        blobs = [late, group.honest("m1")]
        answer = assign_group(
            settings(),
            blobs,
            {"lines": 6},
            knowledge=LeaderKnowledge(claims=group.claims, generation=group.generation),
        )
        group.claims = answer.claims
        assert len(answer.withheld["m1"]) == 3
        assert answer.warnings == ()


def test_a_quarantined_member_that_owns_half_of_a_task_is_named_and_given_up_on():
    topology = (
        __import__("assignor")
        .Topology()
        .add_source("left", topics=["left"])
        .add_source("right", topics=["right"])
        .add_processor("join", parents=["left", "right"])
        .add_state_store("s", processors=["join"])
    )
    setting = LeaderSettings(
        release=find_release("native"),
        subtopologies=topology.subtopologies("app"),
        config=AssignmentConfig(),
    )
    half = tuple(TopicPartition("left", p) for p in range(3))
    blobs = [
        GroupMember(member_id="m0", user_data=start(topology=topology).subscription()[1]),
        GroupMember(member_id="x", user_data=b"\0", owned_partitions=half),
    ]
    claims, counts = LeaderKnowledge().claims, []
    for _ in range(5):
        answer = assign_group(
            setting, blobs, {"left": 3, "right": 3}, knowledge=LeaderKnowledge(claims=claims)
        )
        claims = answer.claims
        counts.append(len(set(answer.answers["m0"].assignment.active_tasks)))
        if counts[-1] < 3:
            assert any(("x" in w and "half" in w) or "part" in w for w in answer.warnings)
    assert counts[0] == 0
    assert counts[-1] == 3
