"""Groups too big for one worker: each is placed by all workers together."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import StorageLevel
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from assignor.placement import strategy_name
from encoding import RebalanceError, shown
from spark_assign.huge import (
    COSTS,
    OF_GAIN,
    HugeGroupPlan,
    OneGroup,
    cost,
    group_in_rows,
    nested_groups,
    plan_group,
)
from spark_assign.tables import (
    MEASURES,
    POSITION,
    RESULT,
    BadTable,
    Groups,
    OutOfMemory,
    Position,
    Reject,
    quoted,
    step,
)
from spark_assign.workers import Notes, Options

_ROLES = ("active", "standby", "warmup")
_COSTED = tuple(name for name in COSTS if name in MEASURES.names or name in OF_GAIN)
_DIGITS = 3
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
        tasks: of the group, stored.
        position, place: where it was read; one of them, or neither.
    """

    name: str
    answer: DataFrame
    plan: HugeGroupPlan
    tasks: DataFrame
    position: Position | None = None
    place: str | None = None

    def release(self) -> None:
        """Delete what is stored of the group; call it once the answer is written."""
        self.plan.release()
        self.tasks.unpersist()


def noted_groups(groups: Groups, notes: Notes) -> Groups | None:
    """The huge groups among lines, as workers noted them; None without any."""
    digests = sorted(notes.huge.value)
    if not digests:
        return None
    line = f.sha2(f.col("value").cast("binary"), 256)
    return replace(groups, frame=groups.frame.where(line.isin(digests)))


def split(groups: Groups, huge_tasks: int) -> tuple[Groups, Groups]:
    """Split a table's groups into those of at most `huge_tasks` tasks, and the larger ones."""
    is_huge = groups.tasks() > huge_tasks
    small, large = groups.frame.where(~is_huge), groups.frame.where(is_huge)
    return replace(groups, frame=small), replace(groups, frame=large)


def placed_huge(groups: Groups, options: Options) -> Iterator[HugePlan | Reject]:
    """Plan huge groups one after another, by name; write each plan before you take the next.

    Raises:
        BadTable: there are too many.
    """
    nested = nested_groups(groups, settings=options.settings).persist(StorageLevel.DISK_ONLY)
    has_positions = POSITION in nested.columns
    try:
        columns = ["name", "config", *[POSITION] * has_positions]
        with step(nested.sparkSession, "batch: find the huge groups"):
            heads = nested.select(columns).orderBy("name").limit(HUGE_GROUPS_MAX + 1).collect()
        if len(heads) > HUGE_GROUPS_MAX:
            raise BadTable(
                f"more than {HUGE_GROUPS_MAX} groups are huge, and each takes some seconds; give a "
                "higher --huge-tasks"
            )
        for head in heads:
            rows = nested.where(f.col("name").eqNullSafe(head.name)).drop(POSITION)
            name = head.name or ""
            position = Position(**head[POSITION].asDict()) if has_positions else None
            plan = partial(_plan, rows, head, position, options, groups.keep)
            with step(nested.sparkSession, f"batch: plan huge group {shown(name)}"):
                huge = on_workers(name, position, plan)
            yield huge
            if isinstance(huge, HugePlan):
                huge.release()
    finally:
        nested.unpersist()


def _plan(
    nested: DataFrame,
    head: Row,
    position: Position | None,
    options: Options,
    keep: Sequence[str],
) -> HugePlan:
    group = group_in_rows(nested, head.name or "", head.config, options.settings)
    kept = nested.select(*map(quoted, keep)) if keep else None
    plan = planned(group, strategy_name(options.strategy), kept=kept)
    return replace(plan, position=position)


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
    try:
        plan = plan_group(group.tasks, group.clients, config=group.config, strategy=strategy)
    except BaseException:
        group.tasks.unpersist()
        raise
    plan = replace(plan, warnings=(*warnings, *plan.warnings))
    answer = _as_row(group.name, plan, group.clients, strategy)
    if kept is not None:
        answer = answer.crossJoin(kept)
    return HugePlan(name=group.name, answer=answer, plan=plan, tasks=group.tasks, place=place)


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
    threads = f.coalesce("threads", f.lit(1)).alias("_threads")
    all_clients = clients.select("client", threads).join(held, "client", "left")
    none = f.array().cast("array<string>")
    placed = f.struct(*[f.coalesce(role, none).alias(role) for role in _ROLES])
    entries = f.sort_array(f.collect_list(f.struct("client", placed.alias("placed"))))
    known = _measures(plan)
    measures = [known[field.name].cast(field.dataType).alias(field.name) for field in MEASURES]
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


def _measures(plan: HugeGroupPlan) -> dict[str, Column]:
    """Each of `MEASURES` over the clients of a group, as `measures_of` counts it."""
    known = {name: f.coalesce(f.try_sum(f"_{name}"), f.lit(0)) for name in _COSTED}
    gain, size = plan.gain, f.coalesce(f.size("active"), f.lit(0))
    missing = known["missing_before"] - known["missing_settled"]
    gained = known["unowned"] + missing + f.lit(gain.evened)
    touched = known["touched"]
    discounted = f.round(gained * gained / touched, _DIGITS)
    # If no client has threads, each counts as one.
    most = f.max(f.when(f.col("_threads") > 0, size / f.col("_threads")).otherwise(size))
    average = f.lit(max(plan.tasks / gain.threads, 1.0))
    return known | {
        "clients": f.count("*"),
        "balance_before": f.lit(gain.balance_before),
        "balance_after": f.round(most / average, _DIGITS),
        "balance_settled": f.lit(gain.balance_settled),
        "gained": gained,
        "worth": f.when((gained <= 0) | (touched <= gained), gained).otherwise(discounted),
    }


def _names(tasks: Column) -> Column:
    """Sorted tasks as text."""
    return f.transform(
        f.sort_array(tasks), lambda t: f.concat_ws("_", t["subtopology"], t["partition"])
    )
