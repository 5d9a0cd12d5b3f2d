"""Validation of a strategy's assignment: types first, so that no wrong value is used as index."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

import numpy as np

from assignor.errors import TaskAssignmentError
from assignor.placement.state import NOBODY, GroupState, TaskAssignment
from encoding import TaskId, shown

_NUMBERS = frozenset({int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])})
_LISTS = (tuple, list)
_PAIR = 2
_NAMED = 3
_LONG = 2**63
_NAME = type.__dict__["__name__"]  # a class may have another attribute of that name

Pairs = Sequence[tuple[int, int]]


class AssignmentError(StrEnum):
    """Kinds of violations: the codes of KIP-924, then those for which Kafka has no code.

    `validate` cannot find two of KIP-924's, since columns cannot express them:
    `ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES` comes only from `assignment_from`, and
    `MISSING_PROCESS_ID` never occurs, since a client that is left out has no tasks.
    """

    NONE = "NONE"
    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES = "ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES"
    INVALID_STANDBY_TASK = "INVALID_STANDBY_TASK"
    MISSING_PROCESS_ID = "MISSING_PROCESS_ID"
    UNKNOWN_PROCESS_ID = "UNKNOWN_PROCESS_ID"
    UNKNOWN_TASK_ID = "UNKNOWN_TASK_ID"

    ACTIVE_TASK_NOT_ASSIGNED = "ACTIVE_TASK_NOT_ASSIGNED"
    """A task has no active client; Kafka's own validation accepts this."""
    DUPLICATE_COPY = "DUPLICATE_COPY"
    """A client has two copies of one task."""
    WARMUP_IS_NO_STANDBY = "WARMUP_IS_NO_STANDBY"
    """A warm-up is not among the standbys."""
    WRONG_TYPE = "WRONG_TYPE"
    """The assignment, or a field of it, does not have the declared type or length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that an assignment breaks; `str` gives the sentence.

    Attributes:
        code: the rule; never NONE.
        message: the sentence.
        task: the task, if any; given by name it may be one that does not exist.
        client: the process id, if any; it may be one that does not exist. None if an assignment in
            columns has a client number that does not exist.
        client_number: that number.
    """

    code: AssignmentError
    message: str
    task: TaskId | None = None
    client: str | None = None
    client_number: int | None = None

    def __str__(self) -> str:
        return self.message


class InvalidAssignment(TaskAssignmentError):
    """An assignment breaks rules; the message names the first three.

    Attributes:
        violations: all of them, in the order of `validate`.
    """

    def __init__(self, what: str, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(f"{what} is not valid: {sentences(violations)}")


def sentences(violations: Sequence[Violation]) -> str:
    """The first three violations on one printable line."""
    return "; ".join(shown(violation.message) for violation in violations[:_NAMED])


def validate(state: GroupState, assignment: TaskAssignment) -> tuple[Violation, ...]:
    """All rules that the assignment breaks, with code and sentence; empty if it is valid.

    Checks the types of all fields; then that each task has exactly one active client that exists
    (KIP-924's own validation misses a forgotten task); and that standbys are of existing stateful
    tasks, on existing clients, with at most one copy of a task per client. Never raises, whatever
    is given. Sub-classes of `TaskAssignment` and of numpy arrays are not accepted.
    """
    malformed = _wrong_types(assignment)
    if malformed:
        return (Violation(code=AssignmentError.WRONG_TYPE, message=malformed),)
    return _broken_rules(state, assignment)


def plain(assignment: TaskAssignment) -> TaskAssignment:
    """A valid assignment converted to its declared types, with arrays of its own."""
    return TaskAssignment(
        active=assignment.active.astype(np.int64),
        standbys=_sorted(assignment.standbys),
        warmups=_sorted(assignment.warmups),
        followup=bool(assignment.followup),
        look_again=bool(assignment.look_again),
        warnings=tuple(assignment.warnings),
    )


def type_name(value: object) -> str:
    """The name of a value's type on one printable line; calls no code of the type."""
    return shown(_NAME.__get__(type(value)))


def error_line(error: BaseException) -> str:
    """The type and the text, if any, of an exception on one printable line."""
    try:
        text = shown(error)
    except (Exception, SystemExit):  # noqa: BLE001 a user's exception may raise another one
        text = ""
    return f"{type_name(error)}: {text}" if text else type_name(error)


def _wrong_types(given: object) -> str:
    """A sentence about the first field without its declared type; empty if there is none."""
    if type(given) is not TaskAssignment:
        return f"it is {type_name(given)}; return a TaskAssignment"
    active = given.active
    if type(active) is not np.ndarray:
        return f"active is {type_name(active)}; give a numpy array"
    if active.dtype.kind not in "iu":
        return f"active is given as {shown(active.dtype)}; give whole numbers"
    for name in ("standbys", "warmups"):
        wrong = _wrong_pairs(name, getattr(given, name))
        if wrong:
            return wrong
    for name in ("followup", "look_again"):
        flag = getattr(given, name)
        if type(flag) not in (bool, np.bool_):
            return f"{name} is {type_name(flag)}; give True or False"
    if type(given.warnings) not in _LISTS:
        return f"warnings is {type_name(given.warnings)}; give a tuple of texts"
    strange = sorted({type_name(warning) for warning in given.warnings if type(warning) is not str})
    return f"warnings has entries that are {', '.join(strange)}; give texts" if strange else ""


def _wrong_pairs(name: str, given: object) -> str:
    """A sentence about an invalid list of (task, client) pairs; empty if it is valid."""
    if type(given) not in _LISTS or not isinstance(given, tuple | list):
        return f"{name} is {type_name(given)}; give a tuple of (task, client) pairs"
    if not set(map(type, given)) <= set(_LISTS) or not set(map(len, given)) <= {_PAIR}:
        return f"{name} has entries that are no pairs; give (task, client)"
    if set(map(type, chain.from_iterable(given))) <= _NUMBERS:
        return ""
    kinds = {
        type_name(number) for number in chain.from_iterable(given) if type(number) not in _NUMBERS
    }
    return f"{name} is given as {', '.join(sorted(kinds))}; give whole numbers"


def _broken_rules(state: GroupState, assignment: TaskAssignment) -> tuple[Violation, ...]:
    """All rules that an assignment of the declared types breaks."""
    total, clients = len(state.tasks), len(state.clients)
    active = assignment.active
    if active.shape != (total,):
        message = f"active has shape {active.shape}, but there are {total} tasks"
        return (Violation(code=AssignmentError.WRONG_TYPE, message=message),)
    nowhere = np.flatnonzero((active < 0) | (active >= clients))
    wrong = [_no_client(state, task, int(active[task])) for task in nowhere.tolist()]
    seen = set()
    stateful, runs_on = state.stateful.tolist(), active.tolist()
    for task, client in _plain_pairs(assignment.standbys):
        if not (0 <= task < total and 0 <= client < clients):
            wrong.append(_unknown(state, task, client))
        elif not stateful[task] or runs_on[task] == client or (task, client) in seen:
            wrong.append(_misplaced(state, task, client))
        seen.add((task, client))
    strange = sorted(set(_plain_pairs(assignment.warmups)) - seen)
    wrong += [
        Violation(
            code=AssignmentError.WARMUP_IS_NO_STANDBY,
            message=f"warm-up {_numbers_text(*pair)} is not among the standbys",
        )
        for pair in strange[:_NAMED]
    ]
    return tuple(wrong)


def _no_client(state: GroupState, task: int, client: int) -> Violation:
    name = state.tasks[task]
    if client == NOBODY:
        code, problem = AssignmentError.ACTIVE_TASK_NOT_ASSIGNED, "has no active client"
        return Violation(code=code, message=f"task {name} {problem}", task=name)
    code = AssignmentError.UNKNOWN_PROCESS_ID
    problem = f"is active on client {client}, and this group has {len(state.clients)}"
    return Violation(code=code, message=f"task {name} {problem}", task=name, client_number=client)


def _unknown(state: GroupState, task: int, client: int) -> Violation:
    """The violation of a standby whose task or client does not exist."""
    if 0 <= task < len(state.tasks):
        name = state.tasks[task]
        message = f"standby of {name} is on client {_numbers_text(client)}"
        message += f", and this group has {len(state.clients)}"
        code = AssignmentError.UNKNOWN_PROCESS_ID
        return Violation(code=code, message=message, task=name, client_number=client)
    message = f"standby {_numbers_text(task, client)} names a task that does not exist"
    code, has_client = AssignmentError.UNKNOWN_TASK_ID, 0 <= client < len(state.clients)
    if has_client:
        return Violation(code=code, message=message, client=state.clients[client])
    return Violation(code=code, message=message, client_number=client)


def _misplaced(state: GroupState, task: int, client: int) -> Violation:
    """The violation of a standby that must not be on this client."""
    name, process = state.tasks[task], state.clients[client]
    code, message = AssignmentError.DUPLICATE_COPY, f"{process} holds two copies of {name}"
    if not state.stateful[task]:
        code = AssignmentError.INVALID_STANDBY_TASK
        message = f"standby of {name}, which has no state"
    return Violation(code=code, message=message, task=name, client=process)


def _plain_pairs(given: Pairs) -> Pairs:
    """Pairs as tuples of `int`; returned unchanged if they are that already."""
    if set(map(type, given)) <= {tuple} and set(map(type, chain.from_iterable(given))) <= {int}:
        return given
    return [(int(task), int(client)) for task, client in given]


def _sorted(given: Pairs) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(_plain_pairs(given)))


def _numbers_text(*numbers: int) -> str:
    """One number or a pair as text; Python refuses to print numbers of thousands of digits."""
    texts = [str(n) if -_LONG <= n < _LONG else "a number beyond 64 bits" for n in numbers]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
