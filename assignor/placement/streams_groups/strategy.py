"""`kafka_streams_group`: the target assignment that a broker computes for a streams group."""

import numpy as np

from assignor.config import AssignmentConfig
from assignor.placement.standbys import too_few_clients
from assignor.placement.state import GroupState, TaskAssignment
from assignor.placement.streams_groups.assign import assign_members
from assignor.placement.streams_groups.members import member_specs
from assignor.placement.trace import Record, Trace

_MAX_STANDBYS = 2
_WHY = (
    "the broker gives each member its share of all tasks, whatever the lags and racks, "
    "and moves them at once"
)


def kafka_streams_group(state: GroupState, *, record: Record | None = None) -> TaskAssignment:
    """Place every task as brokers of Kafka 4.4.0 do for a streams group (KIP-1071).

    Those of 4.2.0 to 4.3.1 differ in the order of equal loads and overlook some former standbys
    (`assign_members` with `since_4_4=False`).

    Tasks move at once: there are no warm-ups and no follow-up rebalances. Lags, racks, tags,
    weights and the settings for them are not used.

    The members are those of `member_specs`. A real member draws a new id at each start, and ids
    decide among equal loads, so a real group may differ in such places.

    Args:
        state: the group.
        record: called with the trace of the assignment, if given.
    """
    stateful = [task for task, has in zip(state.tasks, state.stateful, strict=True) if has]
    wanted = state.config.num_standby_replicas
    specs = member_specs(state)
    assigned = assign_members(
        specs, stateful=stateful, stateless=state.tasks, num_standby_replicas=wanted
    )
    number = {task: place for place, task in enumerate(state.tasks)}
    client_of = {process_id: place for place, process_id in enumerate(state.clients)}
    active = np.zeros(len(state.tasks), dtype=np.int64)
    pairs: list[tuple[int, int]] = []
    for spec in specs:
        client, tasks = client_of[spec.process_id], assigned[spec.member_id]
        active[[number[task] for task in tasks.active]] = client
        pairs += [(number[task], client) for task in tasks.standby]
    if record is not None:
        trace = Trace(home=state.owner, balanced=active, target=active, standbys=None, why=_WHY)
        record(trace)
    return TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs)),
        warnings=_warnings(state, placed=len(pairs), stateful=len(stateful)),
    )


def _warnings(state: GroupState, *, placed: int, stateful: int) -> tuple[str, ...]:
    config = state.config
    wanted, able = config.num_standby_replicas, int((state.capacity() > 0).sum())
    found = list(too_few_clients(wanted, placed // stateful, able)) if stateful else []
    if wanted > _MAX_STANDBYS:
        found.append(
            f"{wanted} standby replicas are configured; brokers allow {_MAX_STANDBYS} in a streams "
            "group unless group.streams.max.standby.replicas is raised"
        )
    ignored = _ignored_settings(config)
    if ignored:
        found.append(f"a streams group ignores {' and '.join(ignored)} (Kafka 4.4)")
    return tuple(found)


def _ignored_settings(config: AssignmentConfig) -> list[str]:
    used = {
        "rack.aware.assignment.strategy": config.rack_aware_assignment_strategy != "none",
        "rack.aware.assignment.tags": bool(config.rack_aware_assignment_tags),
    }
    return [name for name, is_set in used.items() if is_set]
