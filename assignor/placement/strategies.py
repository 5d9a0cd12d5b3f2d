"""Strategies by name, functions that run them, and helpers for custom strategies.

A strategy is any callable from a `GroupState` to a `TaskAssignment`; it may be passed wherever a
name is expected. `run_strategy` calls it and validates its assignment.
"""

import difflib
import importlib
import inspect
import traceback
from dataclasses import replace
from functools import partial
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

import numpy as np

from assignor.config import takes
from assignor.errors import ConfigError, TaskAssignmentError
from assignor.placement.bands import keep_owners
from assignor.placement.client_shares import share_warnings
from assignor.placement.standbys import target_standbys
from assignor.placement.state import NOBODY, GroupState, IntArray, Strategy, TaskAssignment
from assignor.placement.trace import Trace, TraceableStrategy
from assignor.placement.user_modules import refuse_path, user_module
from assignor.placement.validation import (
    InvalidAssignment,
    error_line,
    plain,
    type_name,
    validate,
)
from encoding import shown

# name -> (module, attribute); a strategy is imported on first use.
STRATEGIES = MappingProxyType(
    {
        "fallback_prior": ("assignor.placement.builtin", "fallback_prior"),
        "high_availability": ("assignor.placement.builtin", "high_availability"),
        "kafka_high_availability": ("assignor.placement.jvm", "kafka_high_availability"),
        "kafka_streams_group": ("assignor.placement.streams_groups", "kafka_streams_group"),
        "sticky": ("assignor.placement.builtin", "sticky"),
    }
)


def find_strategy(name: str) -> Strategy:
    """The built-in strategy of that name.

    Raises:
        ConfigError: no strategy has the name; the message suggests the nearest one.
    """
    entry = STRATEGIES.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, sorted(STRATEGIES), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(STRATEGIES))}"
        raise ConfigError(f"unknown strategy '{shown(name)}'; {hint}")
    strategy: Strategy = getattr(importlib.import_module(entry[0]), entry[1])
    return strategy


def named_strategy(name: str) -> Strategy:
    """A built-in strategy by its name, or a custom one by MODULE:CALLABLE.

    The module is imported from the import path; if it is not there, from the current directory
    (`user_module`).

    Raises:
        ConfigError: the name, the module or the callable does not exist.
        MemoryError, KeyboardInterrupt, GeneratorExit: raised while the module was imported.
    """
    if ":" not in name:
        return find_strategy(name)
    module, _, attribute = name.partition(":")
    refuse_path(module)
    if not module or not attribute or module.startswith("."):
        raise ConfigError(f"strategy {shown(name)} is incomplete; write MODULE:CALLABLE")
    found = getattr(user_module(module), attribute, None)
    if not callable(found):
        raise ConfigError(
            f"module {shown(module)} has no callable {shown(attribute)}; give MODULE:CALLABLE"
        )
    strategy: Strategy = found
    return strategy


def strategy_of(given: Strategy | str) -> Strategy:
    """The strategy for a setting: a name, MODULE:CALLABLE, or the strategy itself.

    Raises:
        ConfigError: there is no strategy of that name, or the value cannot be called with a group.
    """
    strategy = named_strategy(given) if isinstance(given, str) else given
    if not takes(strategy, 1):
        raise ConfigError(
            f"strategy={shown(repr(given))} is refused: give a name, MODULE:CALLABLE, or a "
            "function of one GroupState"
        )
    return strategy


def run_strategy(state: GroupState, strategy: Strategy) -> TaskAssignment:
    """The strategy's assignment: valid, in the declared types, with arrays of its own.

    The strategy gets the group with read-only arrays. Warnings about clients that stay below their
    share of stateful tasks are added to the assignment's own.

    Raises:
        TaskAssignmentError: the strategy raised an `Exception` or `SystemExit`; the message names
            the strategy and the exception on one printable line.
        InvalidAssignment: a TaskAssignmentError; the assignment breaks the rules in `violations`.
        MemoryError, KeyboardInterrupt, GeneratorExit: raised by the strategy.
    """
    return _checked_answer(state, strategy, strategy)


def run_with_trace(state: GroupState, strategy: Strategy) -> tuple[TaskAssignment, Trace | None]:
    """The strategy's assignment as from `run_strategy`, and the trace that it recorded.

    A strategy with a keyword parameter `record` gets a function, which it calls with its `Trace`.
    The trace is None for all other strategies, and if none was recorded.

    Raises:
        TaskAssignmentError: as from `run_strategy`; or the trace does not fit the group.
    """
    if not _is_traceable(strategy):
        return run_strategy(state, strategy), None
    traces: list[Trace] = []
    answer = _checked_answer(state, strategy, partial(strategy, record=traces.append))
    if not traces:
        return answer, None
    trace = _usable(traces[-1], state)
    if trace is None:
        raise TaskAssignmentError(
            f"the trace of strategy {strategy_name(strategy)} is not usable: record a Trace of "
            f"int64 arrays of {len(state.tasks)} clients each, numbered 0 to "
            f"{len(state.clients) - 1} "
            "(-1 in home: none), and of standbys as pairs of such numbers"
        )
    return answer, trace


def _is_traceable(strategy: Strategy) -> TypeGuard[TraceableStrategy]:
    """Whether the callable itself, not a function that it wraps, has a parameter `record`."""
    try:
        found = inspect.signature(strategy, follow_wrapped=False).parameters.get("record")
    except (TypeError, ValueError):  # some callables written in C have no signature
        return False
    return found is not None and found.kind in (found.KEYWORD_ONLY, found.POSITIONAL_OR_KEYWORD)


def _usable(trace: object, state: GroupState) -> Trace | None:
    """The trace in plain types, or None if it is not about the group's tasks and clients."""
    if not isinstance(trace, Trace) or not isinstance(trace.why, str):
        return None
    tasks, clients = len(state.tasks), len(state.clients)
    try:
        given = () if trace.standbys is None else trace.standbys
        pairs = frozenset((index(task), index(client)) for task, client in given)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 a user's values may raise anything
        return None
    # A task without a former owner has no home; it always has a client in the end.
    columns = ((trace.home, NOBODY), (trace.balanced, 0), (trace.target, 0))
    are_valid = all(
        isinstance(column, np.ndarray)
        and column.dtype == np.int64
        and column.shape == (tasks,)
        and bool(((column >= lowest) & (column < clients)).all())
        for column, lowest in columns
    ) and all(0 <= task < tasks and 0 <= client < clients for task, client in pairs)
    if not are_valid:
        return None
    return replace(trace, standbys=None if trace.standbys is None else pairs)


def _checked_answer(state: GroupState, strategy: Strategy, call: Strategy) -> TaskAssignment:
    """The result of `run_strategy`, with `call` called in place of the strategy."""
    try:
        assignment = call(state.read_only())
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # a user's strategy may raise anything
        raise TaskAssignmentError(
            f"strategy {strategy_name(strategy)} failed, {error_line(error)}{_raised_at(error)}"
        ) from error
    wrong = validate(state, assignment)
    if wrong:
        raise InvalidAssignment(f"the answer of strategy {strategy_name(strategy)}", wrong)
    found = plain(assignment)
    return replace(found, warnings=(*found.warnings, *share_warnings(state, found)))


def _raised_at(error: BaseException) -> str:
    """File and line of the innermost Python call that raised; empty if there is none."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({shown(Path(frames[-1].filename).name)}, line {frames[-1].lineno})" if frames else ""


def strategy_name(strategy: Strategy | str) -> str:
    """The name of a strategy: as given, of the function, or of the class of another callable."""
    if isinstance(strategy, str):
        return strategy
    try:
        name = getattr(strategy, "__name__", None)
    except Exception:  # noqa: BLE001 a user's callable may have any attributes
        name = None
    return shown(name) if type(name) is str else type_name(strategy)


def identity(state: GroupState) -> TaskAssignment:
    """The assignment with the fewest changes: owners keep their tasks, copies stay standbys.

    Tasks without an owner are spread evenly. At most `num.standby.replicas` copies of a task stay,
    those with the smallest lag. A basis for custom strategies that change little.
    """
    active = keep_owners(state, state.owner)
    pairs: list[tuple[int, int]] = []
    for task in np.flatnonzero(state.stateful).tolist():
        near = sorted((lag, c) for c, lag in state.copies(task) if c != active[task])
        kept = near[: state.config.num_standby_replicas]
        pairs += [(task, client) for _, client in kept]
    return TaskAssignment(active=active, standbys=tuple(sorted(pairs)))


def default_standbys(state: GroupState, active: IntArray) -> tuple[tuple[int, int], ...]:
    """Standbys for placed active tasks: existing copies stay, new ones are spread.

    Args:
        state: the group.
        active: int [T], the client of every task.

    Returns:
        (task, client) pairs, sorted; `num.standby.replicas` per task, or fewer if there are too few
        clients.
    """
    return target_standbys(state, active).pairs()
