"""Placements read from a result, or from a group's current tasks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from assignor.placement import NOBODY, GroupState, TaskAssignment, sentences, validate
from assignor.problems import ProblemError, clients_after, regroup
from encoding import TaskId


def answer_of(state: GroupState, data: Mapping[str, Any], which: str) -> TaskAssignment:
    """The placement that a result, or a problem's own `active` and `standby`, describes.

    Args:
        state: the group that was placed.
        data: the JSON object of the result or problem.
        which: its name in errors.

    Raises:
        ProblemError: it holds an error, names clients or tasks that are not there, leaves a task
            out, or is not valid for another reason; the message says which.
    """
    if "error" in data:
        raise ProblemError(f"{which} holds no placement but an error: {data['error']}")
    if not isinstance(data.get("clients"), Mapping):
        raise ProblemError(f"{which} has no clients; give problems or results")
    client_of = {name: number for number, name in enumerate(state.clients)}
    task_of = {str(task): number for number, task in enumerate(state.tasks)}
    found: dict[str, list[tuple[int, int]]] = {"active": [], "standby": [], "warmup": []}
    for name, given in sorted(data["clients"].items()):
        if name not in client_of:
            raise ProblemError(f"{which} names client {name}, which the group does not have")
        for kind, pairs in found.items():
            tasks = (_known(task_of, task, which) for task in given.get(kind) or ())
            pairs += [(task, client_of[name]) for task in tasks]
    active = np.full(len(state.tasks), NOBODY, dtype=np.int64)
    for task, client in found["active"]:
        if active[task] != NOBODY:
            raise ProblemError(f"{which} has task {state.tasks[task]} active on two clients")
        active[task] = client
    placed = TaskAssignment(
        active=active,
        standbys=tuple(sorted(found["standby"] + found["warmup"])),
        warmups=tuple(sorted(found["warmup"])),
        followup=bool(data.get("probing")),
        look_again=bool(data.get("look_again")),
    )
    wrong = validate(state, placed)
    if wrong:
        raise ProblemError(f"{which} is no complete placement: {sentences(wrong)}")
    return placed


def _known(task_of: Mapping[str, int], name: object, which: str) -> int:
    try:
        return task_of[str(TaskId.parse(str(name)))]
    except (KeyError, ValueError):
        raise ProblemError(f"{which} names task {name!r}, which the group does not have") from None


def regrouped(state: GroupState, placed: TaskAssignment) -> GroupState:
    """The group once it runs a placement and its copies have caught up."""
    return regroup(state, clients_after(state, placed))
