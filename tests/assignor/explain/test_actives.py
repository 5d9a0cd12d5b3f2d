"""Reasons are true: independent code compares each with the group and the assignment."""

import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import (
    ClientInput,
    TaskAssignment,
    group_state,
    run_strategy,
    validate,
)
from assignor.explain.actives import active_reason
from assignor.explain.candidate_clients import candidates
from assignor.explain.copies import copy_reason, dropped, dropped_reason
from assignor.explain.facts import facts_of, trace_of
from assignor.placement import LAG_RUNNING, find_strategy
from encoding import TaskId
from tests.assignor.explain.groups import (
    ACTIVE_CLAIMS,
    COPY_CLAIMS,
    TaskFacts,
    draw_group,
    group_of_one,
    holder,
)
from tests.nightly import examples

STRATEGIES = (
    "high_availability",
    "sticky",
    "fallback_prior",
    "kafka_high_availability",
    "kafka_streams_group",
)


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_stated_reason_is_true_of_the_group_and_the_answer(strategy, seed):
    state = draw_group(seed)
    answer = find_strategy(strategy)(state)
    assert validate(state, answer) == ()
    facts = facts_of(state, answer, strategy=strategy)
    for task in range(len(state.tasks)):
        known, reason = TaskFacts(state, answer, task), active_reason(facts, task)
        assert ACTIVE_CLAIMS[reason.rule](known), reason
        assert reason.why
        for client in known.copies:
            reason = copy_reason(facts, task, client)
            assert COPY_CLAIMS[reason.rule](known, client), reason
        for client in dropped(facts, task):
            reason = dropped_reason(facts, task, client)
            assert COPY_CLAIMS[reason.rule](known, client), reason


@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_numbers_in_sentences_are_those_of_the_group(seed):
    state = draw_group(seed)
    answer = find_strategy("high_availability")(state)
    facts = facts_of(state, answer, strategy="high_availability")
    now = np.bincount(answer.active[state.stateful], minlength=len(state.clients))
    total, threads = int(state.stateful.sum()), int(state.capacity().sum())
    for task in range(len(state.tasks)):
        why = active_reason(facts, task).why
        within = re.search(r"and has (\d+) stateful tasks, its band is (\d+) to (\d+)", why)
        if within:
            count, low, high = map(int, within.groups())
            own = int(state.capacity()[answer.active[task]])
            assert count == now[answer.active[task]]
            assert (low, high) == (own * total // threads, -(-own * total // threads))
            assert low <= count <= high
        for name, lag in re.findall(r"(c\d) is at lag ([\d,]+)", why):
            assert dict(state.copies(task))[state.clients.index(name)] == int(lag.replace(",", ""))
        if "none of its subtopology there has less" in why:
            owner, sub = state.owner[task], state.subtopology[task]
            stays = (facts.trace.target == owner) & (state.owner == owner) & state.stateful
            same_subtopology = stays & (state.subtopology == sub)
            assert state.end_offset_sums[task] <= state.end_offset_sums[same_subtopology].min()
        waits = re.search(r"waits for one of the (\d+) warm-ups", why)
        if waits:
            extra = [
                sum(t == index for t, _ in answer.standbys) for index in range(len(state.tasks))
            ]
            wanted = state.config.num_standby_replicas
            assert sum(max(0, n - wanted) for n in extra) == int(waits[1])


@settings(max_examples=examples(50), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_who_waits_runs_on_its_target_once_the_target_has_caught_up(seed):
    state = draw_group(seed)
    strategy = find_strategy("high_availability")
    answer = strategy(state)
    facts = facts_of(state, answer, strategy="high_availability")
    assert facts.trace is not None
    for task in np.flatnonzero(facts.trace.target != answer.active).tolist():
        assert state.stateful[task]
        assert not TaskFacts(state, answer, task).hot(facts.target(task))


def one_task(*clients, **settings):
    state = group_of_one(*clients, **settings)
    answer = find_strategy("high_availability")(state)
    return facts_of(state, answer, strategy="high_availability")


CASES = [
    ((holder("a", LAG_RUNNING, runs=True), holder("b", None)), "kept by its owner"),
    ((holder("a", 20_000, runs=True), holder("b", 3)), "failed over to a caught-up copy"),
    ((holder("a", 20_000, runs=True), holder("b", 90_000)), "stays with the existing state"),
    ((holder("a", None), holder("b", 3)), "taken over by a caught-up copy"),
    ((holder("a", None), holder("b", 90_000)), "taken over by a copy that is behind"),
    ((holder("a", None), holder("b", None)), "started without state"),
    (
        (holder("a", LAG_RUNNING, runs=True, threads=0), holder("b", 3)),
        "leaves a client without threads",
    ),
]


@pytest.mark.parametrize(("clients", "rule"), CASES, ids=[rule for _, rule in CASES])
def test_each_rule_decides_its_case(clients, rule):
    assert active_reason(one_task(*clients), 0).rule == rule


def test_a_task_with_little_state_is_started_anywhere():
    reason = active_reason(one_task(holder("a", None), lag=50), 0)
    assert reason.rule == "started, little to restore"


def test_an_answer_from_elsewhere_is_explained_by_what_can_be_seen():
    facts = one_task(holder("a", LAG_RUNNING, runs=True), holder("b", 3))
    moved = TaskAssignment(active=np.array([1]), standbys=((0, 0),))
    assert trace_of(facts.state, moved, "high_availability") is None
    seen = facts_of(facts.state, moved, strategy="high_availability")
    reason = active_reason(seen, 0)
    assert reason.rule == "moved to a caught-up client"
    assert reason.why == "a ran it before; b is caught up (lag 3)"
    assert copy_reason(seen, 0, 0).rule == "the former owner keeps its state"


def test_candidates_show_lag_quota_and_role():
    facts = one_task(holder("a", LAG_RUNNING, runs=True), holder("b", 3), replicas=1)
    first, second = candidates(facts, 0)
    assert (first.role, first.was_owner, first.is_target) == ("active", True, True)
    assert (second.role, second.lag, second.is_caught_up) == ("standby", 3, True)
    assert (first.stateful, first.low, first.high, first.threads) == (1, 0, 1, 1)


@pytest.mark.usefixtures("clock")
def test_reasons_cost_nothing_when_not_asked_for():
    code = (
        "import sys; from assignor import find_strategy; find_strategy('high_availability'); "
        "import assignor.cli.assign.command; "
        "sys.exit(any(name.startswith('assignor.explain.actives') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_copy_without_progress_is_not_reported_as_on_its_way():
    tasks = [TaskId(0, number) for number in range(8)]
    late = {tasks[3]: 900_000}
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=name,
                active_tasks=frozenset(own),
                lags=dict.fromkeys(own, -1) | (late if name == "b" else {}),
                lags_before=late,
            )
            for name, own in (("a", tasks[:4]), ("b", tasks[4:6]), ("c", tasks[6:]))
        ],
        end_offset_sums=dict.fromkeys(tasks, 1_000_000),
    )
    answer = run_strategy(state, find_strategy("high_availability"))
    facts = facts_of(state, answer, strategy="high_availability")
    assert (
        "the warm-up there made no progress since the last rebalance: b is at lag 900,000"
        in " ".join(active_reason(facts, 3).why.split())
    )
