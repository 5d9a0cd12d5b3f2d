"""Checks of what a strategy returns: types first, so that nothing indexes with a foreign value."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from assignor.placement.state import GroupState, TaskAssignment
from encoding import shown

_NUMBERS = frozenset({int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])})
_LISTS = (tuple, list)
_PAIR = 2
_LONG = 2**63
_NAME = type.__dict__["__name__"]  # a class may have another attribute of that name

Pairs = Sequence[tuple[int, int]]


def validate(state: GroupState, assignment: TaskAssignment) -> tuple[str, ...]:
    """Every rule that the assignment breaks, as sentences; empty when it is valid.

    Checks the types of all fields, then that each task has exactly one active client that exists
    (KIP-924's own validation misses a forgotten task), and that standbys are of known stateful
    tasks, on known clients, at most one copy of a task a client. Never raises, whatever is given:
    a `TaskAssignment` and numpy arrays are taken as exactly these types, not as sub-classes.
    """
    return _wrong_types(assignment) or _broken_rules(state, assignment)


def plain(assignment: TaskAssignment) -> TaskAssignment:
    """A valid assignment in its declared types, sharing no array with whoever made it."""
    return TaskAssignment(
        active=assignment.active.astype(np.int64),
        standbys=_sorted(assignment.standbys),
        warmups=_sorted(assignment.warmups),
        followup=bool(assignment.followup),
        look_again=bool(assignment.look_again),
        warnings=tuple(assignment.warnings),
    )


def type_name(value: object) -> str:
    """The name of a value's type on one printable line, whatever the type's own code does."""
    return shown(_NAME.__get__(type(value)))


def error_line(error: BaseException) -> str:
    """The type and text of an exception on one printable line, also where it has no text."""
    try:
        text = shown(error)
    except (Exception, SystemExit):  # noqa: BLE001 a user's exception may raise another one
        text = ""
    return f"{type_name(error)}: {text}" if text else type_name(error)


def _wrong_types(given: object) -> tuple[str, ...]:
    """What is not of its declared type; the first such field only."""
    if type(given) is not TaskAssignment:
        return (f"it is {type_name(given)}; return a TaskAssignment",)
    active = given.active
    if type(active) is not np.ndarray:
        return (f"active is {type_name(active)}; give a numpy array",)
    if active.dtype.kind not in "iu":
        return (f"active is given as {shown(active.dtype)}; give whole numbers",)
    for name in ("standbys", "warmups"):
        wrong = _wrong_pairs(name, getattr(given, name))
        if wrong:
            return (wrong,)
    for name in ("followup", "look_again"):
        flag = getattr(given, name)
        if type(flag) not in (bool, np.bool_):
            return (f"{name} is {type_name(flag)}; give True or False",)
    if type(given.warnings) not in _LISTS:
        return (f"warnings is {type_name(given.warnings)}; give a tuple of texts",)
    strange = sorted({type_name(one) for one in given.warnings if type(one) is not str})
    if strange:
        return (f"warnings has entries that are {', '.join(strange)}; give texts",)
    return ()


def _wrong_pairs(name: str, given: object) -> str:
    """What is wrong with a list of (task, client) pairs, or nothing."""
    if type(given) not in _LISTS or not isinstance(given, tuple | list):
        return f"{name} is {type_name(given)}; give a tuple of (task, client) pairs"
    if not set(map(type, given)) <= set(_LISTS) or not set(map(len, given)) <= {_PAIR}:
        return f"{name} has entries that are no pairs; give (task, client)"
    if set(map(type, chain.from_iterable(given))) <= _NUMBERS:
        return ""
    kinds = {type_name(one) for one in chain.from_iterable(given) if type(one) not in _NUMBERS}
    return f"{name} is given as {', '.join(sorted(kinds))}; give whole numbers"


def _broken_rules(state: GroupState, assignment: TaskAssignment) -> tuple[str, ...]:
    """Every rule that an assignment of the declared types breaks."""
    total, clients = len(state.tasks), len(state.clients)
    active = assignment.active
    if active.shape != (total,):
        return (f"active has shape {active.shape}, but there are {total} tasks",)
    nowhere = np.flatnonzero((active < 0) | (active >= clients))
    problems = [f"task {state.tasks[index]} has no active client" for index in nowhere.tolist()]
    seen = set()
    stateful, runs_on = state.stateful.tolist(), active.tolist()
    for task, client in _plain_pairs(assignment.standbys):
        if not (0 <= task < total and 0 <= client < clients):
            problems.append(
                f"standby {_said(task, client)} names a task or client that does not exist"
            )
        elif not stateful[task]:
            problems.append(f"standby of {state.tasks[task]}, which has no state")
        elif runs_on[task] == client or (task, client) in seen:
            problems.append(f"{state.clients[client]} holds two copies of {state.tasks[task]}")
        seen.add((task, client))
    strange = sorted(set(_plain_pairs(assignment.warmups)) - seen)
    problems += [f"warm-up {_said(*pair)} is not among the standbys" for pair in strange[:3]]
    return tuple(problems)


def _plain_pairs(given: Pairs) -> Pairs:
    """Pairs as tuples of `int`; those that are so already are returned as they are."""
    if set(map(type, given)) <= {tuple} and set(map(type, chain.from_iterable(given))) <= {int}:
        return given
    return [(int(task), int(client)) for task, client in given]


def _sorted(given: Pairs) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(_plain_pairs(given)))


def _said(*numbers: int) -> str:
    """A pair; Python refuses to print numbers of thousands of digits."""
    texts = (str(n) if -_LONG <= n < _LONG else "a number beyond 64 bits" for n in numbers)
    return f"({', '.join(texts)})"
