"""The sans-IO member: from bytes and facts to bytes, tasks and steps."""

import ast
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from assignor import assign_group, sticky
from assignor.adapters.membership import member_options, new_member
from assignor.rebalance import NO_CLAIMS, AskAgain, End, GroupMember, LeaderInputs, RejoinLater
from assignor.rebalance import member as core_module
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES, StrategyFailures
from encoding import (
    Assignment,
    AssignorError,
    NativeAssignment,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from probing.features import ASSIGNMENT_PROTOCOL, FinalizedLevels
from tests.assignor.rebalance.groups import TOPOLOGY

TASKS = [TaskId(0, number) for number in range(4)]
LINES = tuple(TopicPartition("lines", number) for number in range(4))


def core_of(number=1, **options):
    keywords = {"strategy": sticky, "process_id": UUID(int=number)} | options
    return new_member(member_options(TOPOLOGY, "app", keywords))


def join(core, owned=()):
    core.begin_join()
    given_up = core.give_up(is_lost=False)
    core.subscription(owned_partitions=sorted(owned))
    return given_up


def decide(leader, group):
    """The leader's answers to the joined cores, by member id."""
    leader.begin_lead()
    members = [GroupMember(member_id=name, user_data=c.last_bytes) for name, c in group.items()]
    own_id = next(name for name, core in group.items() if core is leader)
    inputs = LeaderInputs(generation=1, leader_id=own_id)
    return leader.decide(members, {"lines": 4}, inputs).answers


def take(core, answer, generation=1):
    pairs = [tuple(partition) for partition in answer.partitions]
    return core.take(pairs, answer.user_data, generation=generation, now_ms=0)


def rebalance(group, generation=1):
    """Run one generation, led by the first member; return what each adopted."""
    for core in group.values():
        join(core)
    answers = decide(next(iter(group.values())), group)
    return {name: take(core, answers[name], generation) for name, core in group.items()}


def answer_of(**fields):
    value = Assignment(version=11, commonly_supported_version=11, **fields)
    return encode_assignment(value)


def at(level, epoch):
    return FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level}, epoch=epoch)


def test_a_core_imports_no_client_no_thread_no_clock_and_no_socket():
    tree = ast.parse(Path(core_module.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported == {
        "assignor",
        "collections",
        "dataclasses",
        "encoding",
        "probing",
        "types",
        "typing",
    }


def test_cores_rebalance_by_their_bytes_alone():
    group = {"m1": core_of(1), "m2": core_of(2)}
    taken = rebalance(group)
    held = {name: sorted(each.held.active) for name, each in taken.items()}
    assert sorted(held["m1"] + held["m2"]) == TASKS
    assert len(held["m1"]) == len(held["m2"]) == 2
    assert {(each.used_before, each.used_after) for each in taken.values()} == {(11, 101)}
    assert [core.partition_counts for core in group.values()] == [{"lines": 4}] * 2


def test_an_eager_core_gives_everything_up_once_and_revokes_nothing_after_an_answer():
    core = core_of()
    taken = rebalance({"m1": core})["m1"]
    assert not taken.revoked.active
    given_up = join(core, owned=())
    assert sorted(given_up.active) == TASKS
    assert core.give_up(is_lost=False) is None


def test_a_cooperative_core_keeps_its_tasks_and_revokes_what_moves():
    first = core_of(1, rebalance_protocol="cooperative")
    rebalance({"m1": first})
    assert join(first, owned=reversed(LINES)) is None
    assert first.owned == LINES
    native = decode_subscription(first.last_bytes).native
    assert [tuple(ranges) for ranges in native.owned_partitions] == [("lines", 0, 4)]
    assert native.owned_generation == 1
    second = core_of(2, rebalance_protocol="cooperative")
    join(second)
    group = {"m1": first, "m2": second}
    taken = take(first, decide(first, group)["m1"], generation=2)
    assert len(taken.held.active) == 2
    assert sorted([*taken.held.active, *taken.revoked.active]) == TASKS


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_a_core_whose_member_the_group_removed_loses_all_tasks(protocol):
    core = core_of(rebalance_protocol=protocol)
    rebalance({"m1": core})
    given_up = core.give_up(is_lost=True)
    assert sorted(given_up.active) == TASKS
    core.subscription()
    subscription = decode_subscription(core.last_bytes)
    assert subscription.prev_tasks == ()
    assert subscription.native.owned_generation == -1


@pytest.mark.parametrize("user_data", [None, b"", b"\0\0", b"\xff" * 12])
def test_an_answer_that_cannot_be_read_leaves_no_tasks_and_is_asked_for_after_a_back_off(user_data):
    core = core_of()
    rebalance({"m1": core})
    for wait_ms in (1_000, 2_000):
        taken = core.take([("lines", 0)], user_data, generation=2, now_ms=0)
        assert not taken.held.active
        [step] = core.steps(taken, now_ms=0)
        assert step == AskAgain(why=taken.received.failure, wait_ms=wait_ms)


def test_a_time_for_the_next_rebalance_is_a_step():
    core = core_of()
    pairs = [("lines", 0)]
    answer = answer_of(active_tasks=(TASKS[0],), next_rebalance_ms=7_000)
    taken = core.take(pairs, answer, generation=1, now_ms=1_000)
    assert RejoinLater(delay_ms=6_000) in core.steps(taken, now_ms=1_000)


def test_a_level_that_the_member_cannot_meet_ends_it():
    core = core_of()
    native = NativeAssignment(feature_levels={ASSIGNMENT_PROTOCOL: 10_000}, feature_epoch=3)
    taken = core.take([], answer_of(native=native), generation=1, now_ms=0)
    assert core.state.refusal is not None
    [*_, end] = core.steps(taken, now_ms=0)
    assert end == End(why=taken.received.failure)


def test_a_request_to_shut_down_is_in_every_subscription_and_in_the_answer():
    group = {"m1": core_of(1), "m2": core_of(2)}
    group["m2"].request_shutdown()
    taken = rebalance(group)
    requested = decode_subscription(group["m2"].last_bytes).error_code
    assert requested == AssignorError.SHUTDOWN_REQUESTED
    assert all(each.asks_for_shutdown for each in taken.values())
    assert not any(each.held.active for each in taken.values())


def test_a_leader_remembers_the_claims_of_answers_that_arrived():
    group = {"m1": core_of(1), "m2": core_of(2)}
    leader = group["m1"]
    rebalance(group)
    arrived = leader.memory.claims
    assert sorted(arrived.given.values()) == ["m1", "m1", "m2", "m2"]
    decide(leader, group)
    assert leader.memory.claims is arrived, "these answers have not arrived yet"
    leader.begin_join()
    take(leader, decide(group["m2"], group)["m1"], generation=2)
    assert leader.memory.claims == NO_CLAIMS, "another member leads"


def test_a_member_forgets_lags_failures_and_stalled_copies_when_another_one_leads():
    group = {"m1": core_of(1), "m2": core_of(2)}
    first, second = group.values()
    old = {
        "lags_before": {"p": {TASKS[0]: 7}},
        "failures": StrategyFailures(count=2, retry_at_ms=9),
        "stalled": StalledCopies(looks=3),
    }
    first.memory = replace(first.memory, **old)
    answers = decide(second, {name: core for name, core in group.items() if not join(core)})
    take(first, answers["m1"])
    assert {name: getattr(first.memory, name) for name in old} == {
        "lags_before": {},
        "failures": NO_FAILURES,
        "stalled": NONE_STALLED,
    }
    second.memory = replace(second.memory, **old)
    take(second, answers["m2"])
    assert second.memory.stalled == old["stalled"], "it leads"


def test_a_rebalance_that_is_decided_twice_has_the_memory_of_the_one_before():
    """New subtopologies are looked up between two decisions of one rebalance."""
    leader, other = core_of(1), core_of(2)
    join(leader), join(other)
    decide(leader, {"a": leader, "b": other})
    before = leader.memory
    members = [
        GroupMember(member_id=name, user_data=c.last_bytes)
        for name, c in (("a", leader), ("b", other))
    ]
    seen = []

    def remembering(settings, group, counts, *, knowledge, held_view):
        seen.append(knowledge)
        return assign_group(settings, group, counts, knowledge=knowledge, held_view=held_view)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_module, "assign_group", remembering)
        leader.begin_lead()
        for _ in range(2):
            # As if copies had been followed since.
            leader.memory = replace(leader.memory, lags_before={"now": {TASKS[0]: 7}})
            leader.decide(members, {"lines": 4}, LeaderInputs(generation=2, leader_id="a"))
    assert [known.lags_before for known in seen] == [before.lags_before] * 2
    assert [known.stalled for known in seen] == [before.stalled] * 2


def test_a_leader_knows_itself_by_member_id_also_beside_a_thread_that_writes_equal_bytes():
    def failing(state):
        raise ZeroDivisionError

    group = {"a": core_of(1, strategy=failing), "b": core_of(1, strategy=failing)}
    for core in group.values():
        join(core)
    group["a"].last_bytes = group["b"].last_bytes
    answers = decide(group["b"], group)
    asked = {name: answer.assignment.next_rebalance_ms for name, answer in answers.items()}
    assert asked["b"] == 10_000
    assert asked["a"] != 10_000
