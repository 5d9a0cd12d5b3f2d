"""A diff lists every change once; its counts equal those of the simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import ClientInput, group_state
from assignor.explain.facts import facts_of
from assignor.explain.moves import diff_of, joined
from assignor.explain.read_back import answer_of, regrouped
from assignor.placement import LAG_RUNNING, NOBODY, find_strategy
from assignor.problems.values import ProblemError
from encoding import TaskId
from tests.assignor.explain.groups import draw_group
from tests.nightly import examples

STRATEGIES = ("high_availability", "sticky", "kafka_high_availability", "kafka_streams_group")


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_change_is_listed_once_with_its_reason(strategy, seed):
    state = draw_group(seed)
    answer = find_strategy(strategy)(state)
    found = diff_of(facts_of(state, answer, strategy=strategy))
    by_kind = {}
    for move in found.moves:
        assert move.reason.rule
        by_kind.setdefault(move.kind, []).append(move)
    moved = np.flatnonzero(answer.active != state.owner).tolist()
    assert [m.task for m in by_kind.get("active", [])] == moved
    assert found.stay == len(state.tasks) - len(moved)
    copies = set(zip(state.copy_task().tolist(), state.copy_client.tolist(), strict=True))
    placed = {(t, int(c)) for t, c in enumerate(answer.active)} | set(answer.standbys)
    new = {pair for pair in answer.standbys if pair not in copies} | set(answer.warmups)
    listed = {(m.task, m.client) for m in by_kind.get("standby", []) + by_kind.get("warm-up", [])}
    former = {(t, c) for t, c in answer.standbys if state.owner[t] == c}
    assert new <= listed <= new | former
    gone = {(t, c) for t, c in copies - placed if state.stateful[t]}
    assert {(m.task, m.source) for m in by_kind.get("dropped", [])} == gone


def two_clients(*, running="a", also=()):
    task = TaskId(0, 0)
    names = ["a", "b", *also]
    return group_state(
        tasks=[task],
        stateful_tasks=[task],
        clients=[
            ClientInput(
                process_id=name,
                active_tasks=frozenset([task] if name == running else []),
                lags={task: LAG_RUNNING} if name == running else {},
            )
            for name in names
        ],
        end_offset_sums={task: 500_000},
    )


def test_a_task_whose_client_left_had_no_owner():
    before, after = two_clients(running="a"), two_clients(running="c", also=("c",))
    alive = joined(before, after)
    assert alive.owner.tolist() == [0]
    without = group_state(
        tasks=before.tasks, stateful_tasks=before.tasks, clients=[ClientInput(process_id="b")]
    )
    left = joined(before, without)
    assert left.owner.tolist() == [NOBODY]
    assert left.copies(0) == []


def test_a_placement_is_read_from_a_result_and_from_a_group():
    state = two_clients()
    placed = answer_of(
        state, {"clients": {"a": {"active": ["0_0"]}, "b": {"warmup": ["0_0"]}}}, "B"
    )
    assert placed.active.tolist() == [0]
    assert placed.standbys == placed.warmups == ((0, 1),)
    assert regrouped(state, placed).copies(0) == [(0, LAG_RUNNING), (1, 0)]


@pytest.mark.parametrize(
    ("clients", "sentence"),
    [
        ({"z": {"active": ["0_0"]}}, "B names client z"),
        ({"a": {"active": ["9_9"]}}, "B names task '9_9'"),
        ({"a": {"active": ["x"]}}, "B names task 'x'"),
        ({"a": {}}, "task 0_0 has no active client"),
        ({"a": {"active": ["0_0"]}, "b": {"active": ["0_0"]}}, "task 0_0 active on two clients"),
    ],
)
def test_an_invalid_placement_is_refused(clients, sentence):
    with pytest.raises(ProblemError, match=sentence):
        answer_of(two_clients(), {"clients": clients}, "B")
    with pytest.raises(ProblemError, match="an error: too bad"):
        answer_of(two_clients(), {"error": "too bad"}, "B")


def test_records_are_those_of_the_placed_copies():
    state = two_clients()
    placed = answer_of(state, {"clients": {"b": {"active": ["0_0"]}}}, "B")
    found = diff_of(facts_of(state, placed))
    assert found.restored_records == 500_000
    assert found.counts.handoffs == 1
    [(kind, rule, moves), (dropped, _, _)] = found.groups()
    assert (kind, rule, dropped) == ("active", "moved, state restored", "dropped")
    assert moves[0].records == 500_000
