"""The rules of the boundary, of claims and of quarantine, each in a case where it decides."""

from dataclasses import replace

import pytest

from assignor import GroupMember, LeaderKnowledge, assign_group
from assignor.rebalance.leader import placing
from assignor.rebalance.leader.boundary import decode_members, restrict_members
from assignor.rebalance.leader.claims import (
    LONG_PATIENCE,
    PATIENCE,
    ClaimMemory,
    Claims,
    check_claims,
)
from assignor.rebalance.leader.fault_isolation import (
    MAX_RUNS,
    answer_with_quarantine,
    search_runs,
)
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.withholding import withhold
from assignor.rebalance.level_reports import HIGHEST_EPOCH, reported_levels
from assignor.topology import plan_tasks
from encoding import RUNNING, PartitionRange, TaskId, TaskOffsetSums, encode_subscription
from probing import find_release
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from tests.assignor.rebalance.groups import TOPOLOGY, start
from tests.assignor.rebalance.leader.hostile import ALL, TASKS, settings, written

NATIVE = find_release("native")
PLAN = plan_tasks(TOPOLOGY.subtopologies("app"), {"lines": 6})


def read(member, generation=-1):
    decoded = decode_members([member], NATIVE)
    return restrict_members([member], decoded, PLAN, generation)[0]


def sums_of(columns, names=None):
    subtopologies, partitions = columns
    return TaskOffsetSums.from_columns(
        subtopologies, partitions, [RUNNING] * len(partitions), names
    )


@pytest.mark.parametrize(
    ("sums", "kept"),
    [
        (sums_of(([0, 0, 1, -1], [5, 6, 0, 0])), [TaskId(0, 5)]),
        (sums_of(([0, 0], [-1, 2])), [TaskId(0, 2)]),
        (sums_of(([0, 0], [1, 2]), ["named", None]), [TaskId(0, 2)]),
        (sums_of(([2**31 - 1], [2**31 - 1])), []),
    ],
)
def test_only_tasks_of_the_plan_pass(sums, kept):
    value, _ = start("3.9").subscription()
    member = GroupMember(
        member_id="x", user_data=encode_subscription(replace(value, task_offset_sums=sums))
    )
    assert list(read(member).subscription.task_offset_sums.tasks()) == kept


@pytest.mark.parametrize(("reported", "believed"), [(6, 6), (7, -1), (8, -1), (2**31 - 1, -1)])
def test_only_generations_before_this_one_pass(reported, believed):
    member = written(start(), "x", native={"owned_generation": reported})
    assert read(member, generation=7).native.owned_generation == believed
    assert read(member).native.owned_generation == reported, (
        "a client without a generation has no bound"
    )


def test_a_partition_that_is_owned_twice_is_owned_once():
    member = GroupMember(member_id="x", user_data=b"", owned_partitions=ALL[:1] * 3)
    assert read(member).member.owned_partitions == ALL[:1]


@pytest.mark.parametrize(
    ("levels", "epoch"),
    [({"x": 1}, HIGHEST_EPOCH), ({f"x{n}": 1 for n in range(101)}, 1), ({"x" * 256: 1}, 1)],
)
def test_impossible_levels_count_as_not_reported(levels, epoch):
    assert reported_levels(levels, epoch) == UNKNOWN_LEVELS
    assert reported_levels({"x": 1}, HIGHEST_EPOCH - 1) != UNKNOWN_LEVELS


# Claims


def claimant(name, partitions, *, number=0, generation=None):
    native = {}
    if generation is not None:
        topic, numbers = "lines", sorted(p.partition for p in partitions)
        native = {
            "owned_partitions": tuple(PartitionRange(topic, n, n + 1) for n in numbers),
            "owned_generation": generation,
        }
    release = "3.9" if generation is None else "native"
    return written(start(release, number=number), name, native=native, owned=tuple(partitions))


def claims_of(*members, memory=None):
    return check_claims([read(member) for member in members], memory or ClaimMemory())


def test_the_claim_of_a_readable_owner_goes_before_that_of_an_unreadable_one():
    broken = GroupMember(member_id="a", user_data=b"\0", owned_partitions=ALL[:2])
    claims = claims_of(broken, claimant("b", ALL[:1]))
    assert claims.ignored == {"a": {TASKS[0]}}


def test_a_task_that_was_given_to_another_member_is_not_the_claimants():
    memory = ClaimMemory(given={TASKS[0]: "x", TASKS[1]: "b"})
    claims = claims_of(claimant("x", ALL[:2]), claimant("b", (), number=1), memory=memory)
    assert claims.ignored == {"x": {TASKS[1]}}


def test_a_static_member_has_the_tasks_of_its_former_id():
    memory = ClaimMemory(given={TASKS[0]: "i1-former"})
    assert claims_of(claimant("i1-now", ALL[:1], generation=5), memory=memory).ignored == {}


def test_who_did_not_take_the_answer_loses_a_task_only_to_a_member_that_claims_it():
    memory = ClaimMemory(given={TASKS[0]: "b"})
    late, taken = (read(claimant(name, ALL[:1], generation=5)) for name in ("x", "b"))
    owner = read(claimant("b", ()))
    assert check_claims([late, owner], memory, generation=9).ignored == {}
    assert check_claims([late, taken], memory, generation=9).ignored == {"x": {TASKS[0]}}
    assert check_claims([late, owner], memory, generation=6).ignored == {"x": {TASKS[0]}}


def test_rebalances_in_a_row_with_such_a_claim_are_counted_for_the_warning():
    before = ClaimMemory(given={TASKS[0]: "b"}, doubted={"x": 2, "b": 2, "gone": 2})
    claims = claims_of(claimant("x", ALL[:1]), claimant("b", ALL[:1], number=1), memory=before)
    assert len(claims.warnings) == 1
    assert "x claims 0_0" in claims.warnings[0]
    assert "in 3 rebalances" in claims.warnings[0]
    after = claims.remembered(before, {}, (), PLAN)
    assert after.doubted == {"x": 3}
    assert after.given == {TASKS[0]: "b"}, "the last assigned owner, while the task has none"
    strange = ClaimMemory(given={TaskId(9, 9): "b"})
    assert claims_of(memory=strange).remembered(strange, {}, (), PLAN).given == {}


def rounds(own_generations, *, after=None):
    """The memory of a leader after a member has claimed a task in some rebalances."""
    memory = after or ClaimMemory()
    for generation, own in enumerate(own_generations, start=8):
        member = read(claimant("c", ALL[:1], generation=own))
        claims = check_claims([member], memory, generation=generation)
        memory = claims.remembered(memory, {}, TASKS[:1], PLAN)
    return claims, memory


def test_a_member_without_an_answer_did_not_have_to_revoke():
    claims, memory = rounds([5] * 5)
    assert claims.ignored == {}
    assert (memory.withheld, memory.waited) == ({TASKS[0]: 1}, {TASKS[0]: 5})
    assert memory.doubted == {}
    claims, _ = rounds([5] * (LONG_PATIENCE + 1))
    assert claims.ignored == {"c": {TASKS[0]}}, "no member blocks a task forever"


def test_a_member_that_took_the_answers_and_claims_on_is_not_waited_for():
    claims, memory = rounds([7, 8, 9])
    assert (claims.ignored, memory.withheld) == ({}, {TASKS[0]: PATIENCE})
    assert memory.doubted == {"c": PATIENCE - 1}
    member = read(claimant("c", ALL[:1], generation=10))
    assert check_claims([member], memory, generation=11).ignored == {"c": {TASKS[0]}}


@pytest.mark.parametrize(("late", "early"), [(5, 4), (5, None)])
def test_a_task_waits_for_its_owner_of_the_latest_generation_and_for_owners_without_one(
    late, early
):
    members = [
        claimant("m0", ALL[:3], number=0, generation=late),
        claimant("m1", ALL[:3], number=1, generation=early),
    ]
    answer = assign_group(settings(), members, {"lines": 6})
    given = {p for member_answer in answer.answers.values() for p in member_answer.partitions}
    if early is None:  # both may run them: each keeps its tasks
        assert given == set(ALL)
    else:
        assert set(ALL[:3]) & set(answer.answers["m1"].partitions) == set()


def test_with_an_honest_members_process_id_no_claim_now_and_then_stops_tasks_for_ever():
    members = {f"m{n}": start(number=n) for n in range(2)}
    claims, idle = LeaderKnowledge().claims, []
    for generation in range(1, 31):
        blobs = []
        for name, member in members.items():
            owned = tuple(sorted(p for parts in member.held.active.values() for p in parts))
            data = member.subscription(owned_partitions=owned, owned_generation=generation - 1)[1]
            blobs.append(GroupMember(member_id=name, user_data=data, owned_partitions=owned))
        claimed = ALL if generation % 2 else ()
        blobs.append(written(start("3.9", number=0), "x", owned=claimed))
        answer = assign_group(
            settings(),
            blobs,
            {"lines": 6},
            knowledge=LeaderKnowledge(claims=claims, generation=generation, leader_id="m1"),
        )
        claims = answer.claims
        for name, member in members.items():
            member_answer = answer.answers[name]
            member.receive(member_answer.partitions, member_answer.user_data, now_ms=0)
        idle.append(sum(len(parts) for parts in answer.withheld.values()))
    assert idle[-20:] == [0] * 20


# Suspects


def answering(*culprits):
    """A leader that fails if it uses bytes of these members; counts its calls."""

    def answer(ignored):
        answer.asked += 1
        if set(culprits) - ignored.keys():
            raise ValueError("no")
        return sorted(ignored)

    answer.asked = 0
    return answer


NAMES = [f"m{n:03}" for n in range(100)]


@pytest.mark.parametrize("culprits", [("m000",), ("m099",), ("m003", "m004"), ("m001", "m050")])
def test_only_faulty_members_are_left_out(culprits):
    answer = answering(*culprits)
    found, fault = answer_with_quarantine(answer, NAMES, otherwise=lambda why: why)
    assert found == sorted(culprits)
    assert all(name in fault for name in culprits)
    assert answer.asked <= MAX_RUNS


def test_a_failure_with_most_members_is_not_traced_to_a_member():
    answer = answering(*NAMES[:60])
    found, fault = answer_with_quarantine(answer, NAMES, otherwise=lambda _: "kept")
    assert found == "kept"
    assert "m000" not in fault
    assert answer.asked <= MAX_RUNS


@pytest.mark.parametrize("culprits", [("m000",), ("m050", "m051"), tuple(NAMES[::5])])
def test_the_search_ends_after_so_many_runs_and_leaves_out_whom_it_cannot_tell_apart(culprits):
    for runs in (3, 4, 8, 9, 16):
        answer = answering(*culprits)
        found, _ = answer_with_quarantine(answer, NAMES, runs=runs, otherwise=lambda _: "kept")
        assert answer.asked <= runs
        assert found == "kept" or set(culprits) <= set(found)


def test_a_large_group_is_answered_less_often():
    assert [search_runs(n) for n in (0, 100, 2_000, 11_000, 10**7)] == [64, 64, 20, 8, 8]


def test_levels_that_one_member_alone_changes_are_reported():
    lone = {"adopted_levels": {ASSIGNMENT_PROTOCOL: 11}, "adopted_epoch": 9}
    members = [written(start(number=n), f"m{n}") for n in range(2)]
    members.append(written(start(number=2), "x", native=lone))
    known = FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: 101}, epoch=5)
    answer = assign_group(
        settings(), members, {"lines": 6}, knowledge=LeaderKnowledge(levels=known)
    )
    (warning,) = answer.warnings
    assert "member x alone" in warning
    assert f"{ASSIGNMENT_PROTOCOL}=101 becomes {ASSIGNMENT_PROTOCOL}=11" in warning


# Withholding, and the last fallback


@pytest.mark.parametrize(("other", "withheld"), [(4, {TASKS[0]}), (None, set())])
def test_an_owner_of_a_later_generation_is_waited_for_if_the_receiver_reports_its_own(
    other, withheld
):
    members = [
        read(claimant("m0", ALL[:1], number=0, generation=5)),
        read(claimant("m1", ALL[:1], number=1, generation=other)),
    ]
    nothing = Claims(by_member={}, ignored={}, warnings=())
    placement = Placement(active_by_member={"m1": (TASKS[0],)})
    assert (
        withhold(
            members, PLAN, placement, claims=nothing, memory=ClaimMemory(), now_ms=0
        ).unassigned
        == withheld
    )


def failing(*_, **__):
    raise OverflowError("always")


def test_tasks_that_stay_where_they_ran_stay_with_whom_they_were_given_to(monkeypatch):
    monkeypatch.setattr(placing, "clients_of", failing)
    members = [
        claimant("a", ALL, number=9),
        claimant("m0", ALL[:3], number=0),
        claimant("m1", ALL[3:], number=1),
    ]
    given = {task: f"m{number // 3}" for number, task in enumerate(TASKS)}
    memory = ClaimMemory(given=given)
    answer = assign_group(
        settings(), members, {"lines": 6}, knowledge=LeaderKnowledge(claims=memory)
    )
    assert set(answer.answers["m0"].assignment.active_tasks) == set(TASKS[:3])
    assert set(answer.answers["m1"].assignment.active_tasks) == set(TASKS[3:])


def test_the_leader_does_not_quarantine_itself(monkeypatch):
    real = placing.clients_of

    def fails_of_the_leader(members, *arguments):
        if any(member.id == "m0" and not member.why_quarantined for member in members):
            raise OverflowError("mine")
        return real(members, *arguments)

    monkeypatch.setattr(placing, "clients_of", fails_of_the_leader)
    members = [written(start(number=n), f"m{n}") for n in range(3)]
    knowledge = LeaderKnowledge(leader_id="m0")
    answer = assign_group(settings(), members, {"lines": 6}, knowledge=knowledge)
    assert answer.quarantined == {}
    (fault,) = answer.faults
    assert "OverflowError" in fault
    assert "tasks stay where they ran" in fault
    assert not [warning for warning in answer.warnings if "OverflowError" in warning], (
        "reported twice"
    )
    assert sorted(t for a in answer.answers.values() for t in a.assignment.active_tasks) == TASKS
