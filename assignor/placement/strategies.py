"""Strategies by name, and helpers for strategies of your own.

A strategy is any callable from a `GroupState` to a `TaskAssignment`; it may be passed wherever a
name is expected. What it answers is checked by `validate` before anybody hears of it.
"""

import difflib
import importlib
import sys
from types import MappingProxyType

import numpy as np

from assignor.errors import ConfigError
from assignor.placement.bands import keep_owners
from assignor.placement.standbys import target_standbys
from assignor.placement.state import GroupState, IntArray, Strategy, TaskAssignment, validate
from encoding import RebalanceError

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
        raise ConfigError(f"unknown strategy {name!r}; {hint}")
    strategy: Strategy = getattr(importlib.import_module(entry[0]), entry[1])
    return strategy


def named_strategy(name: str) -> Strategy:
    """A strategy by its name, or a callable of the user's own by MODULE:CALLABLE.

    Raises:
        ConfigError: there is none of that name, no such module, or it cannot be called.
    """
    if ":" not in name:
        return find_strategy(name)
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        raise ConfigError(str(error)) from None
    if not callable(found):
        raise ConfigError(f"module {module} has no callable {attribute}; give MODULE:CALLABLE")
    strategy: Strategy = found
    return strategy


def run_strategy(state: GroupState, strategy: Strategy) -> TaskAssignment:
    """The strategy's answer, valid.

    Raises:
        ConfigError: the strategy failed or broke a rule; the message says which.
    """
    try:
        assignment = strategy(state)
        wrong = validate(state, assignment)
    except RebalanceError:
        raise
    except Exception as error:  # a user's strategy may raise anything
        raise ConfigError(f"the strategy failed, {type(error).__name__}: {error}") from error
    if wrong:
        raise ConfigError(f"the strategy's answer is not valid: {'; '.join(wrong[:3])}")
    return assignment


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
