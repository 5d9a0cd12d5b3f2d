"""Plan one huge group and write the plan, with a summary of its costs."""

import json
import time
from dataclasses import asdict, dataclass

from spark_assign.huge.group_rows import OneGroup
from spark_assign.huge.job import HugeGroupPlan, plan_group
from spark_assign.huge.rejects import VALID_TASKS, ValidRows, without_invalid_rows
from spark_assign.huge.worker.answer import OF_GAIN
from spark_assign.tables import Stage, WrongRows

SUMMARY = "_summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The costs of a plan; copies are counted while they are written.

    Attributes:
        name: of the group.
        strategy: of the plan.
        tasks, clients: their numbers.
        standbys, warmups: numbers of copies besides active tasks.
        moved: tasks that move from the client that runs them, with this plan.
        to_move: tasks that will have moved once the group has settled.
        restores: copies placed on clients without state of the task.
        cold: active tasks started behind while a copy elsewhere is caught up.
        active_traffic, standby_traffic: partitions read from another rack.
        handoffs, takeovers, stateless_moves, restored_records, unknown_restores: as in `Measures`.
        rack_cost, rack_bound: rack cost of the active tasks once settled, and the minimum with the
            same number of tasks on every client; 0 without rack costs.
        given: standbys that move for balance.
        above: standbys placed above the load band of their client.
        probing: whether a probing rebalance is wanted while copies warm up.
        passes: number of passes over the tasks; the first one reads the table.
        seconds: from reading the tables to the last row written.
        warnings: settings that could not be met, and why.
        rejects: number of rejected rows.
        first_rejects: sentences for the first few rejects.
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
    handoffs: int
    takeovers: int
    stateless_moves: int
    restored_records: int
    unknown_restores: int
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
    """Plan a group and write a row for each copy (`schemas.PLACEMENT`).

    Args:
        group: the group.
        stage: where to write; the caller commits.
        strategy: high_availability, or sticky for a plan that moves everything at once.
        stop_at_reject: fail if a row is invalid; otherwise reject such rows and place the others.

    Raises:
        BadTable: a table or a row is invalid; the message names it.
        ConfigError: the strategy cannot place a huge group.
    """
    started = time.perf_counter()
    valid = ValidRows(group=group)
    try:
        plan = _plan(group, strategy)
    except WrongRows:
        if stop_at_reject:
            raise
        valid = without_invalid_rows(group, stage)
        plan = _plan(valid.group, strategy)
    try:
        stage.write(plan.placements)
    finally:
        plan.release()
    stage.files.delete(f"{stage.path}/{VALID_TASKS}")
    counted = {name: count for name, count in plan.sums().items() if name not in OF_GAIN}
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
        rejects=valid.rejects,
        first_rejects=valid.first_rejects,
    )
    stage.write_text(SUMMARY, json.dumps(asdict(summary)) + "\n")
    return summary


def _plan(group: OneGroup, strategy: str) -> HugeGroupPlan:
    return plan_group(group.tasks, group.clients, config=group.config, strategy=strategy)
