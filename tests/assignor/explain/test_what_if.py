"""Changes that would change an assignment: each is applied here and has the stated effect."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import high_availability, validate
from assignor.explain.facts import facts_of
from assignor.explain.what_if import changes, with_copy, without_client
from assignor.placement import LAG_RUNNING, NOBODY, find_strategy
from tests.assignor.explain.groups import draw_group
from tests.nightly import examples


def explained(state):
    return facts_of(state, high_availability(state), strategy="high_availability")


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_copy_that_is_set_is_reported_and_all_others_stay(seed):
    state = draw_group(seed)
    task, client = len(state.tasks) // 2, len(state.clients) - 1
    for lag in (7, None):
        changed = with_copy(state, task, client, lag)
        for other in range(len(state.tasks)):
            expected = dict(state.copies(other))
            if other == task:
                expected.pop(client, None)
                expected |= {} if lag is None else {client: lag}
            assert dict(changed.copies(other)) == expected
        assert len(changed.copy_stalled) == len(changed.copy_client)


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_client_that_left_runs_and_holds_nothing(seed):
    state = draw_group(seed)
    if int((state.threads > 0).sum()) < 2:
        return
    gone = int(np.flatnonzero(state.threads > 0)[0])
    changed = without_client(state, gone)
    answer = high_availability(changed)
    assert validate(changed, answer) == ()
    assert gone not in answer.active.tolist()
    assert gone not in [client for _, client in answer.standbys]


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_change_that_is_named_happens_when_it_is_made(seed):
    state = draw_group(seed)
    facts = explained(state)
    strategy = find_strategy("high_availability")
    for task in range(0, len(state.tasks), 4):
        now = facts.active[task]
        for change in changes(facts, task, strategy):
            assert change.active != now or change.warms_up != NOBODY
            words = change.condition.split()
            if change.condition.endswith("were caught up on it"):
                client = state.clients.index(words[0])
                made = with_copy(state, task, client, 0)
            elif change.condition.endswith("left the group"):
                made = without_client(state, state.clients.index(words[0]))
            else:
                continue
            assert int(strategy(made).active[task]) == change.active


def test_a_waiting_task_shows_what_would_move_it():
    every = map(explained, map(draw_group, range(1_000)))
    facts = next(f for f in every if (f.trace.target != f.assignment.active).any())
    task = int(np.flatnonzero(facts.trace.target != facts.assignment.active)[0])
    goal = facts.name(facts.target(task))
    found = changes(facts, task, high_availability)
    assert any(c.condition == f"{goal} were caught up on it" for c in found)


def test_nothing_is_named_where_nothing_would_change():
    state = draw_group(0)
    alone = state.clients[0]
    assert alone == "c0"
    lone = without_all_but_one(state)
    facts = explained(lone)
    for task in range(len(lone.tasks)):
        assert changes(facts, task, high_availability) == []


def without_all_but_one(state):
    for client in range(1, len(state.clients)):
        state = without_client(state, client)
    return state


def test_a_lag_of_a_running_task_can_be_set():
    state = draw_group(3)
    changed = with_copy(state, 0, 0, LAG_RUNNING)
    assert dict(changed.copies(0))[0] == LAG_RUNNING
