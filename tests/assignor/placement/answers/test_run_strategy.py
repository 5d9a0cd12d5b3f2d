"""`run_strategy` returns a valid assignment or raises an error, for any strategy."""

import gc

import numpy as np
import pytest

from assignor import (
    AssignmentConfig,
    ClientInput,
    ConfigError,
    TaskAssignment,
    group_state,
    named_strategy,
    run_strategy,
    sticky,
    validate,
)
from assignor.errors import TaskAssignmentError
from assignor.placement import STRATEGIES, find_strategy
from encoding import TaskId
from tests.assignor import broken_strategies
from tests.assignor.broken_strategies import ANSWERING, RAISING

TASKS = [TaskId(0, p) for p in range(4)]


def group(**config):
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS[:3],
        clients=[
            ClientInput(process_id="a", active_tasks=frozenset(TASKS[1:]), lags={TASKS[0]: 7}),
            ClientInput(process_id="b"),
        ],
        config=AssignmentConfig(**config),
        weights={TASKS[0]: 2.0},
    )


@pytest.mark.parametrize("name", RAISING)
def test_what_a_strategy_raises_is_one_printable_line_with_its_name(name):
    with pytest.raises(TaskAssignmentError) as caught:
        run_strategy(group(), getattr(broken_strategies, name))
    message = str(caught.value)
    assert message.startswith(f"strategy {name} failed, {RAISING[name]}")
    assert message.isprintable()


@pytest.mark.parametrize("name", ANSWERING)
def test_what_a_strategy_returns_is_checked_types_first(name):
    with pytest.raises(TaskAssignmentError) as caught:
        run_strategy(group(), getattr(broken_strategies, name))
    message = str(caught.value)
    assert message.startswith(f"the answer of strategy {name} is not valid: ")
    assert ANSWERING[name] in message
    assert message.isprintable()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, GeneratorExit])
def test_what_is_not_the_strategys_fault_passes(error):
    def fails(_):
        raise error

    with pytest.raises(error):
        run_strategy(group(), fails)


def test_a_strategy_of_any_kind_has_a_name():
    class Zones:
        def __call__(self, state):
            raise RuntimeError("x" * 10_000)

    with pytest.raises(TaskAssignmentError, match="strategy Zones failed, RuntimeError: xxx") as e:
        run_strategy(group(), Zones())
    assert len(str(e.value)) < 500


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_work_on_arrays_that_are_read_only(name):
    state, seen = group(num_standby_replicas=1), []

    def watched(given):
        seen.append(given)
        return find_strategy(name)(given)

    run_strategy(state, watched)
    [given] = seen
    columns = ("owner", "threads", "stateful", "subtopology", "copy_start", "copy_client")
    columns += ("copy_lag", "copy_stalled", "end_offset_sums", "weights")
    for column in columns:
        assert not getattr(given, column).flags.writeable, column
        with pytest.raises(ValueError, match="WRITEABLE"):
            getattr(given, column).setflags(write=True)
        assert getattr(state, column).flags.writeable, column


def test_numbers_and_lists_of_other_types_are_made_plain():
    answer = run_strategy(group(), broken_strategies.numpy_numbers)
    assert answer.active.dtype == np.int64
    assert answer.standbys == ((0, 1), (1, 1))
    assert {type(n) for pair in answer.standbys for n in pair} == {int}
    assert answer.followup is False
    assert answer.warnings[:1] == ("odd",)


def test_what_a_strategy_changes_afterwards_does_not_reach_the_answer():
    kept = []

    def keeps(state):
        kept.append(sticky(state).active.copy())
        return TaskAssignment(active=kept[0])

    answer = run_strategy(group(), keeps)
    kept[0][:] = 99
    assert answer.active.max() < 2


def test_validate_rejects_anything_else():
    for value in (None, 7, [], object(), gc, TaskAssignment):
        [violation] = validate(group(), value)
        assert "return a TaskAssignment" in violation.message


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (":x", "write MODULE:CALLABLE"),
        ("x:", "write MODULE:CALLABLE"),
        (":", "write MODULE:CALLABLE"),
        (".a:x", "write MODULE:CALLABLE"),
        ("no.such:x", "No module named 'no'"),
        ("tests.assignor.broken_strategies:nothing", "has no callable nothing"),
        ("tests.assignor.broken_strategies:RAISING", "has no callable RAISING"),
        ("tests.assignor.broken_module:x", "cannot be imported, SystemExit: 0"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_sentence(name, sentence):
    with pytest.raises(ConfigError) as caught:
        named_strategy(name)
    assert sentence in str(caught.value)
    assert str(caught.value).isprintable()
