"""Groups too big for one worker: each is placed by all workers together."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import StorageLevel
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from assignor.placement import strategy_name
from encoding import RebalanceError, shown
from spark_assign.huge import (
    COSTS,
    HugeGroupPlan,
    OneGroup,
    cost,
    in_rows,
    nested_groups,
    plan_group,
)
from spark_assign.tables import (
    MEASURES,
    POSITION,
    RESULT,
    Groups,
    OutOfMemory,
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
# What Spark, the JVM and workers say when memory does not suffice.
_NO_MEMORY = (
    "MemoryError",
    "OutOfMemoryError",
    "Java heap space",
    "GC overhead limit",
    "Python worker exited unexpectedly",
    "Cannot grow BufferHolder",
    "OversizedAllocationException",
)
T = TypeVar("T")
_RAISED = re.compile(r"(?:\w+\.)*\w+(?:Error|Exception|Table|Rows): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePlan:
    """The plan of a huge group.

    Attributes:
        name: of the group.
        answer: one row in the schema `schemas.RESULT`, and the columns to keep.
        plan: what was decided; its counts are known once the answer is written.
        position, place: where it was read; one of them, or neither.
    """

    name: str
    answer: DataFrame
    plan: HugeGroupPlan
    position: Position | None = None
    place: str | None = None


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
    kept = nested.select(*map(quoted, keep)) if keep else None
    plan = planned(group, strategy_name(options.strategy), kept=kept)
    return replace(plan, name=name, position=position)


def planned(
    group: OneGroup,
    strategy: str,
    *,
    kept: DataFrame | None = None,
    place: str | None = None,
    warnings: Sequence[str] = (),
) -> HugePlan:
    """Plan one huge group.

    Args:
        group: its tasks and clients.
        strategy: by name.
        kept: a row of columns that the result has too.
        place: where the group was read.
        warnings: more of them, before those of the plan.
    """
    plan = plan_group(group.tasks, group.clients, config=group.config, strategy=strategy)
    plan = replace(plan, warnings=(*warnings, *plan.warnings))
    answer = _as_row(group.name, plan, group.clients, strategy)
    if kept is not None:
        answer = answer.crossJoin(kept)
    return HugePlan(name=group.name, answer=answer, plan=plan, place=place)


def on_workers(
    name: str, position: Position | None, step: Callable[[], T], *, place: str | None = None
) -> T | Reject:
    """Run a step with one huge group: its result, or a reject of the group.

    Args:
        name: of the group.
        position: where the group was read, for the reject; or `place`, where that is known.
        step: runs jobs for this group only.
        place: as text.

    Raises:
        OutOfMemory: a worker or the driver ran out of memory.
        PySparkException: Spark failed.
    """
    try:
        return step()
    except RebalanceError as error:
        reason = str(error)
    except (PySparkException, Py4JError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory(
                f"group {shown(name)} needs more memory than Spark has; give --driver-memory 4g "
                "(under spark-submit: spark.executor.memory and spark.executor.memoryOverhead), or "
                "place it alone with spark-assign group"
            ) from None
        # The last line of a worker's traceback; without one (a disk, a lost worker) Spark failed.
        lines = [line.strip() for line in str(error).splitlines() if _RAISED.match(line.strip())]
        if not isinstance(error, PythonException) or not lines:
            raise
        reason = f"the group cannot be placed, {shown(lines[-1])}; report it with the group"
    return Reject(name=name, reason=reason, position=position, place=place)


def is_out_of_memory(error: Exception) -> bool:
    """Whether a worker, an executor or the driver's JVM had too little memory."""
    if isinstance(error, Py4JNetworkError):  # the JVM has ended
        return True
    text = str(error)
    return any(sign in text for sign in _NO_MEMORY)


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
