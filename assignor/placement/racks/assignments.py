"""Rack-aware optimisation of an assignment, for custom strategies (KIP-924, KIP-925)."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from assignor.errors import TaskAssignmentError
from assignor.placement.state import BoolArray, GroupState, TaskAssignment
from encoding import TaskId, shown


def optimize_rack_aware_active_tasks(
    state: GroupState,
    assignment: TaskAssignment,
    *,
    tasks: Iterable[TaskId] | None = None,
    traffic_cost: int | None = None,
    non_overlap_cost: int | None = None,
) -> TaskAssignment:
    """Exchange active tasks between clients so that fewer partitions are read from other racks.

    Every client keeps its number of stateful and of stateless tasks. Call this before standbys are
    placed: existing standbys do not move, so a client may end up with two copies of a task.

    Args:
        state: the group, with racks of clients (`racks`) and source partitions (`partition_racks`).
        assignment: a valid assignment.
        tasks: the tasks that may be exchanged; all by default.
        traffic_cost: cost of a partition read from another rack, 0 or more; None: as configured,
            else 10. For stateless tasks traffic always counts more than moves.
        non_overlap_cost: cost of a task that leaves its owner, 0 or more; None: as configured,
            else 1.

    Returns:
        The assignment with other actives, and with warnings about unknown racks. Unchanged if
        `rack.aware.assignment.strategy=none`.

    Raises:
        TaskAssignmentError: a task does not exist, or a cost is below 0.
    """
    # Imported where it is needed: flows bring networkx.
    from assignor.placement.racks.optimise import optimize_active  # noqa: PLC0415 see above

    among = _among(state, tasks)
    priced = _with_costs(state, traffic_cost, non_overlap_cost)
    active, warnings = optimize_active(priced, assignment.active, among=among)
    return replace(assignment, active=active, warnings=(*assignment.warnings, *warnings))


def optimize_rack_aware_standby_tasks(
    state: GroupState,
    assignment: TaskAssignment,
    *,
    tasks: Iterable[TaskId] | None = None,
    traffic_cost: int | None = None,
    non_overlap_cost: int | None = None,
) -> TaskAssignment:
    """Exchange standbys between clients so that fewer changelogs are read from other racks.

    Every client keeps its number of standbys. The copies of a task stay on as many different tag
    values as they were; without tags, on as many different racks. Warm-ups stay.

    Args:
        state: the group, with racks of clients (`racks`) and changelogs (`changelog_racks`).
        assignment: a valid assignment.
        tasks: the tasks whose standbys may be exchanged; all by default.
        traffic_cost: cost of a changelog partition read from another rack, 0 or more; None: as
            configured, else 10.
        non_overlap_cost: cost of a copy on a client without state, 0 or more; None: as configured,
            else 1.

    Returns:
        The assignment with other standbys, and with warnings about unknown racks. Unchanged if
        `rack.aware.assignment.strategy=none`.

    Raises:
        TaskAssignmentError: a task does not exist, or a cost is below 0.
    """
    # Imported where it is needed: flows bring networkx.
    from assignor.placement.racks.optimise import optimize_standbys  # noqa: PLC0415 see above

    among = _among(state, tasks)
    if assignment.warmups:
        is_warming = np.zeros(len(state.tasks), dtype=np.bool_)
        is_warming[[task for task, _ in assignment.warmups]] = True
        among = ~is_warming if among is None else among & ~is_warming
    priced = _with_costs(state, traffic_cost, non_overlap_cost)
    pairs, warnings = optimize_standbys(priced, assignment.active, assignment.standbys, among=among)
    return replace(assignment, standbys=pairs, warnings=(*assignment.warnings, *warnings))


def _among(state: GroupState, tasks: Iterable[TaskId] | None) -> BoolArray | None:
    """Bool [T]: the tasks that may be exchanged; None: all."""
    if tasks is None:
        return None
    wanted = set(tasks)
    unknown = sorted(map(str, wanted - set(state.tasks)))
    if unknown:
        raise TaskAssignmentError(f"task {shown(unknown[0])} does not exist in this group")
    return np.fromiter((task in wanted for task in state.tasks), np.bool_, len(state.tasks))


def _with_costs(state: GroupState, traffic: int | None, non_overlap: int | None) -> GroupState:
    """The group with the given costs instead of the configured ones; None: as configured."""
    for name, cost in (("traffic_cost", traffic), ("non_overlap_cost", non_overlap)):
        if cost is not None and cost < 0:
            raise TaskAssignmentError(f"{name} is {cost}; give 0 or more")
    config = state.config
    if traffic is not None:
        config = replace(config, rack_aware_assignment_traffic_cost=traffic)
    if non_overlap is not None:
        config = replace(config, rack_aware_assignment_non_overlap_cost=non_overlap)
    return replace(state, config=config)
