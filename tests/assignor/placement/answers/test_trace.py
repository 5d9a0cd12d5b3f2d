"""Traces: recorded on request, consistent with the assignment, checked for custom strategies."""

from functools import wraps

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor import identity, run_strategy
from assignor.errors import TaskAssignmentError
from assignor.placement import NOBODY, STRATEGIES, Trace, find_strategy, run_with_trace
from assignor.placement.actives import homes
from tests.assignor.explain.groups import draw_group
from tests.nightly import examples

TRACEABLE = sorted(set(STRATEGIES) - {"fallback_prior"})


@pytest.mark.parametrize("name", TRACEABLE)
@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_trace_changes_no_answer_and_leads_to_it(name, seed):
    state, strategy = draw_group(seed), find_strategy(name)
    answer, trace = run_with_trace(state, strategy)
    plain = run_strategy(state, strategy)
    assert np.array_equal(answer.active, plain.active)
    assert (answer.standbys, answer.warmups) == (plain.standbys, plain.warmups)
    waits = trace.target != answer.active
    assert state.stateful[waits].all()
    assert (state.capacity()[trace.target] > 0).all()
    if name == "sticky":
        assert not waits.any()
        assert trace.standbys == set(answer.standbys)
    if name.startswith("kafka_"):
        assert trace.why
    else:
        assert np.array_equal(trace.home, homes(state))
        assert not trace.why
    if state.config.rack_aware_assignment_strategy == "none" and name == "sticky":
        assert np.array_equal(trace.balanced, trace.target)


def test_strategies_that_record_nothing_have_no_trace():
    state = draw_group(1)

    def silent(given, *, record=None):
        del record
        return identity(given)

    @wraps(find_strategy("sticky"))
    def wrapper(given):
        return find_strategy("sticky")(given)

    for strategy in (find_strategy("fallback_prior"), identity, silent, wrapper, dict):
        if strategy is not dict:
            assert run_with_trace(state, strategy)[1] is None
    with pytest.raises(TaskAssignmentError):
        run_with_trace(state, dict)


class Raises:
    """Standbys of a custom trace that cannot be iterated."""

    def __iter__(self):
        raise RuntimeError("no")


def recording(*values, **changes):
    """A custom strategy that records this, or the trace of its assignment with changes."""

    def strategy(state, *, record=None):
        answer = identity(state)
        if record is not None:
            columns = dict.fromkeys(("home", "balanced", "target"), answer.active)
            made = Trace(**(columns | {"standbys": frozenset(answer.standbys)} | changes))
            record(values[0] if values else made)
        return answer

    return strategy


def test_a_users_strategy_may_record_a_trace():
    state = draw_group(1)
    answer, trace = run_with_trace(state, recording(why="zones first"))
    assert trace.why == "zones first"
    assert np.array_equal(trace.target, answer.active)


@pytest.mark.parametrize(
    "strategy",
    [
        recording("no trace"),
        recording(target=np.zeros(0, dtype=np.int64)),
        recording(home=[NOBODY]),
        recording(standbys=frozenset([(0, 99)])),
        recording(standbys=frozenset(["x"])),
        recording(standbys=frozenset([1, None])),
        recording(standbys=[0, 0, 1, 0]),
        recording(standbys=frozenset([(2**70, 0)])),
        recording(standbys=Raises()),
        recording(target=np.full(len(draw_group(1).tasks), NOBODY)),
        recording(why=["not a sentence"]),
    ],
)
def test_a_trace_that_does_not_fit_the_group_is_refused(strategy):
    with pytest.raises(TaskAssignmentError, match="trace of strategy strategy is not usable"):
        run_with_trace(draw_group(1), strategy)
