"""Strategies by name, and helpers for strategies of your own.

A strategy is any callable from a `GroupState` to a `TaskAssignment`; it may be passed wherever a
name is expected. `run_strategy` calls it, and checks its answer by `validate` before it is used.
"""

import difflib
import importlib
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from assignor.errors import ConfigError, TaskAssignmentError
from assignor.placement.bands import keep_owners
from assignor.placement.client_shares import share_warnings
from assignor.placement.standbys import target_standbys
from assignor.placement.state import GroupState, IntArray, Strategy, TaskAssignment
from assignor.placement.validation import (
    InvalidAssignment,
    error_line,
    plain,
    type_name,
    validate,
)
from encoding import shown

# name -> (module, attribute): a strategy is imported when it is asked for.
STRATEGIES = MappingProxyType(
    {
        "fallback_prior": ("assignor.placement.builtin", "fallback_prior"),
        "high_availability": ("assignor.placement.builtin", "high_availability"),
        "kafka_high_availability": ("assignor.placement.jvm", "kafka_high_availability"),
        "sticky": ("assignor.placement.builtin", "sticky"),
    }
)


def find_strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        ConfigError: no strategy has the name; the nearest one is named.
    """
    entry = STRATEGIES.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, sorted(STRATEGIES), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(STRATEGIES))}"
        raise ConfigError(f"unknown strategy '{shown(name)}'; {hint}")
    strategy: Strategy = getattr(importlib.import_module(entry[0]), entry[1])
    return strategy


def named_strategy(name: str) -> Strategy:
    """A strategy by its name, or a callable of the user's own by MODULE:CALLABLE.

    Raises:
        ConfigError: there is none of that name, no such module, or it cannot be called.
        MemoryError, KeyboardInterrupt, GeneratorExit: raised while the module was imported.
    """
    if ":" not in name:
        return find_strategy(name)
    module, _, attribute = name.partition(":")
    if not module or not attribute or module.startswith("."):
        raise ConfigError(f"strategy {shown(name)} is incomplete; write MODULE:CALLABLE")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except MemoryError:
        raise
    except ModuleNotFoundError as error:
        raise ConfigError(shown(error)) from None
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ConfigError(
            f"module {shown(module)} cannot be imported, {error_line(error)}; mend it"
        ) from error
    if not callable(found):
        raise ConfigError(
            f"module {shown(module)} has no callable {shown(attribute)}; give MODULE:CALLABLE"
        )
    strategy: Strategy = found
    return strategy


def strategy_of(given: Strategy | str) -> Strategy:
    """The strategy that a setting names, or is.

    Raises:
        ConfigError: there is none of that name, or it cannot be called.
    """
    if isinstance(given, str):
        return named_strategy(given)
    if not callable(given):
        raise ConfigError(
            f"strategy={shown(repr(given))} is refused: give a name, MODULE:CALLABLE, or a function"
        )
    return given


def run_strategy(state: GroupState, strategy: Strategy) -> TaskAssignment:
    """The strategy's answer, valid, in the declared types, and in arrays of its own.

    The strategy gets the group in arrays that it cannot write into. Warnings about clients that
    stay below their share of stateful tasks are added to those of the answer.

    Raises:
        TaskAssignmentError: the strategy failed (by an `Exception` or `SystemExit`); the message
            names it, and what it raised, on one printable line.
        InvalidAssignment: a TaskAssignmentError, too; the answer breaks rules, in `violations`.
        MemoryError, KeyboardInterrupt, GeneratorExit: as the strategy raised them.
    """
    try:
        assignment = strategy(state.read_only())
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # a user's strategy may raise anything
        raise TaskAssignmentError(
            f"strategy {_name_of(strategy)} failed, {error_line(error)}{_raised_at(error)}"
        ) from error
    wrong = validate(state, assignment)
    if wrong:
        raise InvalidAssignment(f"the answer of strategy {_name_of(strategy)}", wrong)
    found = plain(assignment)
    return replace(found, warnings=(*found.warnings, *share_warnings(state, found)))


def _raised_at(error: BaseException) -> str:
    """File and line of the innermost call that raised, if it was one in Python."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({shown(Path(frames[-1].filename).name)}, line {frames[-1].lineno})" if frames else ""


def _name_of(strategy: Strategy) -> str:
    """The name of a function, or of the class of another callable."""
    try:
        name = getattr(strategy, "__name__", None)
    except Exception:  # noqa: BLE001 a user's callable may have any attributes
        name = None
    return shown(name) if type(name) is str else type_name(strategy)


def identity(state: GroupState) -> TaskAssignment:
    """Everything stays where it is: owners keep their tasks, copies stay standbys.

    Tasks without an owner are dealt evenly; at most `num.standby.replicas` copies of a task stay,
    the nearest ones. A start for strategies that change little.
    """
    active = keep_owners(state, state.owner)
    pairs: list[tuple[int, int]] = []
    for task in np.flatnonzero(state.stateful).tolist():
        near = sorted((lag, c) for c, lag in state.copies(task) if c != active[task])
        kept = near[: state.config.num_standby_replicas]
        pairs += [(task, client) for _, client in kept]
    return TaskAssignment(active=active, standbys=tuple(sorted(pairs)))


def default_standbys(state: GroupState, active: IntArray) -> tuple[tuple[int, int], ...]:
    """Standbys for actives that are placed: what is there stays, the rest is spread.

    Args:
        state: the group.
        active: int [T], the client of every task.

    Returns:
        (task, client) pairs, sorted; `num.standby.replicas` a task, as far as clients allow.
    """
    standbys = target_standbys(state, active)
    return tuple(zip(standbys.task.tolist(), standbys.client.tolist(), strict=True))
