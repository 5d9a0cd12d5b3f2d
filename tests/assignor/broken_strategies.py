"""Strategies that raise, or return something else than a valid assignment."""

import sys

import numpy as np

from assignor import TaskAssignment, sticky
from assignor.errors import TaskAssignmentError


def valid(state):
    return sticky(state)


def raises(_):
    raise ZeroDivisionError("by\nnothing")


def raises_task_assignment_error(_):
    raise TaskAssignmentError("none today")


def exits(_):
    sys.exit(0)


class _UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raises_without_words(_):
    raise _UnprintableError


def returns_none(_):
    return None


def returns_list(state):
    return [0] * len(state.tasks)


def returns_dict(state):
    return dict.fromkeys(state.clients, ())


def drops_a_task(state):
    return TaskAssignment(active=np.zeros(len(state.tasks) - 1, dtype=np.int64))


def _active(state):
    return np.zeros(len(state.tasks), dtype=np.int64)


def places_nowhere(state):
    return TaskAssignment(active=_active(state) - 1)


def beside_its_active(state):
    return TaskAssignment(active=_active(state), standbys=((0, 0),))


def no_numbers(state):
    return TaskAssignment(active=np.full(len(state.tasks), np.nan))


def list_of_clients(state):
    return TaskAssignment(active=[0] * len(state.tasks))


def of_objects(state):
    return TaskAssignment(active=_active(state).astype(object))


def of_booleans(state):
    return TaskAssignment(active=_active(state).astype(bool))


class _Hostile(np.ndarray):
    @property
    def shape(self):
        raise KeyboardInterrupt

    def tolist(self):
        sys.exit(0)


def hostile_array(state):
    return TaskAssignment(active=_active(state).view(_Hostile))


class _MyAssignment(TaskAssignment):
    @property
    def active(self):
        sys.exit(0)


def hostile_assignment(_):
    return object.__new__(_MyAssignment)


def far_beyond(state):
    return TaskAssignment(active=_active(state), standbys=((10**5000, 0),))


def standbys_none(state):
    return TaskAssignment(active=_active(state), standbys=None)


def standbys_of_three(state):
    return TaskAssignment(active=_active(state), standbys=((0, 1, 2),))


def standbys_flat(state):
    return TaskAssignment(active=_active(state), standbys=(0, 1))


def standbys_text(state):
    return TaskAssignment(active=_active(state), standbys=("01",))


def warmups_strange(state):
    return TaskAssignment(active=_active(state), warmups=((0, 1),))


def warmups_unhashable(state):
    return TaskAssignment(active=_active(state), warmups=(([], 1),))


def followup_text(state):
    return TaskAssignment(active=_active(state), followup="later")


def look_again_text(state):
    return TaskAssignment(active=_active(state), look_again="later")


def warnings_numbers(state):
    return TaskAssignment(active=_active(state), warnings=(1, b"x"))


def warnings_text(state):
    return TaskAssignment(active=_active(state), warnings="careful")


def writes_into_the_state(state):
    state.owner[:] = 0
    return sticky(state)


def numpy_numbers(state):
    """A valid assignment with unsorted numpy types."""
    active = np.zeros(len(state.tasks), dtype=np.uint16)
    pairs = [[np.int64(1), np.uint8(1)], (np.int32(0), 1)]
    return TaskAssignment(active=active, standbys=pairs, followup=np.False_, warnings=["odd"])


RAISING = {
    "raises": "ZeroDivisionError: by\\nnothing",
    "raises_task_assignment_error": "TaskAssignmentError: none today",
    "exits": "SystemExit: 0",
    "raises_without_words": "_UnprintableError",
    "writes_into_the_state": "ValueError: assignment destination is read-only",
}
"""Name -> what `run_strategy` says of it."""

ANSWERING = {
    "returns_none": "it is NoneType; return a TaskAssignment",
    "returns_list": "it is list; return a TaskAssignment",
    "returns_dict": "it is dict; return a TaskAssignment",
    "hostile_assignment": "it is _MyAssignment; return a TaskAssignment",
    "drops_a_task": "active has shape (3,), but there are 4 tasks",
    "places_nowhere": "task 0_0 has no active client",
    "beside_its_active": "a holds two copies of 0_0",
    "no_numbers": "active is given as float64; give whole numbers",
    "list_of_clients": "active is list; give a numpy array",
    "of_objects": "active is given as object; give whole numbers",
    "of_booleans": "active is given as bool; give whole numbers",
    "hostile_array": "active is _Hostile; give a numpy array",
    "far_beyond": "standby (a number beyond 64 bits, 0) names a task that does not exist",
    "standbys_none": "standbys is NoneType; give a tuple of (task, client) pairs",
    "standbys_of_three": "standbys has entries that are no pairs; give (task, client)",
    "standbys_flat": "standbys has entries that are no pairs; give (task, client)",
    "standbys_text": "standbys has entries that are no pairs; give (task, client)",
    "warmups_strange": "warm-up (0, 1) is not among the standbys",
    "warmups_unhashable": "warmups is given as list; give whole numbers",
    "followup_text": "followup is str; give True or False",
    "look_again_text": "look_again is str; give True or False",
    "warnings_numbers": "warnings has entries that are bytes, int; give texts",
    "warnings_text": "warnings is str; give a tuple of texts",
}
"""Name -> what `run_strategy` says of its answer."""


def as_a_client_says(state):
    """Return the strategy that a client is named after, else a valid one."""
    named = [name for name in state.clients if name in RAISING | ANSWERING]
    return globals()[named[0]](state) if named else valid(state)
