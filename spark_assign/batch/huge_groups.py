"""Groups too big for one worker: each is placed by all workers together."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from assignor.placement import strategy_name
from encoding import RebalanceError, shown
from spark_assign.huge import COSTS, HugeGroupPlan, cost, in_rows, nested_groups, plan_group
from spark_assign.tables import (
    MEASURES,
    POSITION,
    RESULT,
    Groups,
    Position,
    Reject,
    quoted,
    step,
)
from spark_assign.workers import Options

_ROLES = ("active", "standby", "warmup")
_COSTED = tuple(name for name in MEASURES.names if name in COSTS)
# Huge groups of one batch; each costs a few Spark jobs. With more, raise --huge-tasks.
HUGE_GROUPS_MAX = 1_000
T = TypeVar("T")
_RAISED = re.compile(r"(?:\w+\.)*\w+(?:Error|Exception|Table|Rows): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePlan:
    """The plan of a huge group.

    Attributes:
        name: of the group.
        position: where it was read, where that is known.
        answer: one row in the schema `schemas.RESULT`, and the columns to keep.
        plan: what was decided; its counts are known once the answer is written.
    """

    name: str
    position: Position | None
    answer: DataFrame
    plan: HugeGroupPlan


def split(groups: Groups, huge_tasks: int) -> tuple[Groups, Groups]:
    """Split groups into those of at most `huge_tasks` tasks, and the larger ones."""
    is_huge = groups.tasks() > huge_tasks
    small, large = groups.frame.where(~is_huge), groups.frame.where(is_huge)
    return replace(groups, frame=small), replace(groups, frame=large)


def placed_huge(groups: Groups, options: Options) -> Iterator[HugePlan | Reject]:
    """Plan huge groups one after another, by name; write each plan before you take the next.

    Problems that cannot be read are skipped; `kernel.placing` rejects them.
    """
    nested = nested_groups(groups, skip_invalid=True).persist(StorageLevel.DISK_ONLY)
    has_positions = POSITION in nested.columns
    try:
        columns = ["name", *[POSITION] * has_positions]
        with step(nested.sparkSession, "batch: find the huge groups"):
            heads = nested.select(columns).orderBy("name").limit(HUGE_GROUPS_MAX).collect()
        for head in heads:
            rows = nested.where(f.col("name").eqNullSafe(head.name)).drop(POSITION)
            name = head.name or ""
            position = Position(**head[POSITION].asDict()) if has_positions else None
            plan = partial(_plan, rows, name, position, options, groups.keep)
            with step(nested.sparkSession, f"batch: plan huge group {shown(name)}"):
                huge = on_workers(name, position, plan)
            yield huge
            if isinstance(huge, HugePlan):
                huge.plan.release()
    finally:
        nested.unpersist()


def _plan(
    nested: DataFrame,
    name: str,
    position: Position | None,
    options: Options,
    keep: Sequence[str],
) -> HugePlan:
    group = in_rows(nested, settings=options.settings, what=f"group {name}")
    strategy = strategy_name(options.strategy)
    plan = plan_group(group.tasks, group.clients, config=group.config, strategy=strategy)
    answer = _as_row(name, plan, group.clients, strategy)
    if keep:
        answer = answer.crossJoin(nested.select(*map(quoted, keep)))
    return HugePlan(name=name, position=position, answer=answer, plan=plan)


def on_workers(name: str, position: Position | None, step: Callable[[], T]) -> T | Reject:
    """Run a step with one huge group: its result, or a reject of the group.

    Args:
        name: of the group.
        position: where the group was read, for the reject.
        step: runs jobs for this group only.

    Raises:
        PySparkException: Spark failed, or a worker ran out of memory.
    """
    try:
        return step()
    except RebalanceError as error:
        reason = str(error)
    except PythonException as error:
        # The last line of a worker's traceback; without one (a disk, a lost worker) Spark failed.
        lines = [line.strip() for line in str(error).splitlines() if _RAISED.match(line.strip())]
        if not lines or "MemoryError" in lines[-1]:
            raise
        reason = f"the group cannot be placed, {shown(lines[-1])}; report it with the group"
    return Reject(name=name, reason=reason, position=position)


def _as_row(name: str, plan: HugeGroupPlan, clients: DataFrame, strategy: str) -> DataFrame:
    """The plan as one row in the schema `schemas.RESULT`."""
    task = f.struct("subtopology", "partition")
    held = plan.costed.groupBy("client").agg(
        *[
            _names(f.collect_list(f.when(f.col("role") == role, task))).alias(role)
            for role in _ROLES
        ],
        *[cost(name).alias(f"_{name}") for name in _COSTED],
    )
    # Clients without tasks are listed too.
    all_clients = clients.select("client").join(held, "client", "left")
    none = f.array().cast("array<string>")
    placed = f.struct(*[f.coalesce(role, none).alias(role) for role in _ROLES])
    entries = f.sort_array(f.collect_list(f.struct("client", placed.alias("placed"))))
    known = {name: f.try_sum(f"_{name}") for name in _COSTED} | {"clients": f.count("*")}
    # Balance, gain and worth are null: they take all tasks at once.
    measures = [
        known.get(field.name, f.lit(None)).cast(field.dataType).alias(field.name)
        for field in MEASURES
    ]
    return (
        all_clients.agg(
            f.map_from_entries(entries).alias("clients"), f.struct(*measures).alias("measures")
        )
        .select(
            f.lit(name).alias("name"),
            f.lit(strategy).alias("assignor"),
            f.lit(None).cast("double").alias("millis"),
            f.lit(plan.followup).alias("probing"),
            "clients",
            f.array(*map(f.lit, plan.warnings)).cast("array<string>").alias("warnings"),
            "measures",
        )
        .select(*RESULT.names)
    )


def _names(tasks: Column) -> Column:
    """Sorted tasks as text."""
    return f.transform(
        f.sort_array(tasks), lambda t: f.concat_ws("_", t["subtopology"], t["partition"])
    )
