"""One huge group from its tables to a plan on disk, with a summary of what the plan costs."""

import json
import time
from dataclasses import asdict, dataclass

from spark_assign.huge.job import GroupPlan, plan_group
from spark_assign.huge.rejects import SOUND, Parted, parted
from spark_assign.huge.source import OneGroup
from spark_assign.tables import Stage, WrongRows

SUMMARY = "_summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """What a plan costs; copies are counted while they are written.

    Attributes:
        name: of the group.
        strategy: that made the plan.
        tasks, clients: how many.
        standbys, warmups: copies besides active tasks.
        moved: tasks taken from the client that runs them, now.
        to_move: tasks that belong elsewhere, once all has settled.
        restores: copies placed where there was no state.
        cold: active tasks started behind while a copy elsewhere is caught up.
        active_traffic, standby_traffic: partitions read from another rack.
        rack_cost, rack_bound: cost of the placement of active tasks once settled, and the least
            there can be with the same number of tasks on every client; 0 without rack costs.
        given: standbys that move for balance.
        above: standbys that no client within its band can hold.
        probing: whether to look again while copies warm up.
        passes: over the rows of the tasks; the first one reads the table.
        seconds: from the first look at the tables to the last row written.
        warnings: what could not be had, and why.
        rejects: rows that were set apart and not placed.
        first_rejects: sentences for the first few.
    """

    name: str
    strategy: str
    tasks: int
    clients: int
    standbys: int
    warmups: int
    moved: int
    to_move: int
    restores: int
    cold: int
    active_traffic: int
    standby_traffic: int
    rack_cost: int
    rack_bound: int
    given: int
    above: int
    probing: bool
    passes: int
    seconds: float
    warnings: tuple[str, ...]
    rejects: int = 0
    first_rejects: tuple[str, ...] = ()


def run_group(
    group: OneGroup,
    stage: Stage,
    *,
    strategy: str = "high_availability",
    stop_at_reject: bool = True,
) -> GroupSummary:
    """Decide and write the plan of one group: a row per copy (`schemas.PLACEMENT`).

    Args:
        group: what to place.
        stage: where to write; the caller commits.
        strategy: high_availability, or sticky for a plan that moves everything at once.
        stop_at_reject: fail where a row makes no sense; otherwise such rows are set apart, and the
            others placed.

    Raises:
        BadTable: a row makes no sense, or the tables do; the message says which.
        ConfigError: another strategy.
    """
    started = time.perf_counter()
    parts = Parted(group=group)
    try:
        plan = _plan(group, strategy)
    except WrongRows:
        if stop_at_reject:
            raise
        parts = parted(group, stage)
        plan = _plan(parts.group, strategy)
    try:
        stage.write(plan.placements)
    finally:
        plan.release()
    stage.files.delete(f"{stage.path}/{SOUND}")
    counted = dict(plan.counts.get)
    summary = GroupSummary(
        **counted,
        name=group.name,
        strategy=strategy,
        clients=plan.clients,
        to_move=plan.moved,
        rack_cost=plan.rack_cost,
        rack_bound=plan.rack_bound,
        given=plan.given,
        above=plan.above,
        probing=plan.followup,
        passes=plan.passes,
        seconds=round(time.perf_counter() - started, 3),
        warnings=plan.warnings,
        rejects=parts.rejects,
        first_rejects=parts.first_rejects,
    )
    stage.write_text(SUMMARY, json.dumps(asdict(summary)) + "\n")
    return summary


def _plan(group: OneGroup, strategy: str) -> GroupPlan:
    return plan_group(group.tasks, group.clients, config=group.config, strategy=strategy)
