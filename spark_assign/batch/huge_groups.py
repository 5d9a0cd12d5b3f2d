"""Groups too big for one worker, out of a table of groups: each placed by all workers together."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyspark import StorageLevel
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from encoding import RebalanceError, shown
from spark_assign.huge import GroupPlan, in_rows, nested_groups, plan_group
from spark_assign.tables import PLACE, RESULT, Groups, Reject
from spark_assign.workers import Options

_ROLES = ("active", "standby", "warmup")
# Each costs a few jobs of its own; whoever has more should raise the threshold.
MOST = 1_000
T = TypeVar("T")
_RAISED = re.compile(r"(?:\w+\.)*\w+(?:Error|Exception|Table|Rows): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Huge:
    """A huge group, decided.

    Attributes:
        name: of the group.
        answer: one row in the schema `schemas.RESULT`, or None where it was rejected.
        plan: what was decided; its counts are there once the answer has been written.
        reject: why it cannot be placed.
        place: where it stands in the input (`places.PLACE_TYPE`), where that is known.
    """

    name: str
    answer: DataFrame | None = None
    plan: GroupPlan | None = None
    reject: Reject | None = None
    place: Mapping[str, str | int | None] = field(default_factory=dict)


def split(groups: Groups, huge_tasks: int) -> tuple[Groups, Groups]:
    """The groups of at most so many tasks, and the others."""
    is_huge = groups.tasks() > huge_tasks
    small, large = groups.frame.where(~is_huge), groups.frame.where(is_huge)
    return (
        Groups(frame=small, is_text=groups.is_text),
        Groups(frame=large, is_text=groups.is_text),
    )


def placed_huge(groups: Groups, options: Options) -> Iterator[Huge]:
    """Each of these groups, one after another, by name; write each before you take the next.

    Problems that cannot be read are left out; `kernel.placing` rejects them.
    """
    nested = nested_groups(groups, skip_invalid=True).persist(StorageLevel.DISK_ONLY)
    has_places = PLACE in nested.columns
    try:
        heads = nested.select("name", *[PLACE] * has_places).orderBy("name").limit(MOST).collect()
        for head in heads:
            rows = nested.where(f.col("name").eqNullSafe(head.name)).drop(PLACE)
            one = _one(rows, head.name or "", options)
            yield replace(one, place=head[PLACE].asDict() if has_places else {})
            if one.plan is not None:
                one.plan.release()
    finally:
        nested.unpersist()


def _one(nested: DataFrame, name: str, options: Options) -> Huge:
    def decided() -> Huge:
        group = in_rows(nested, settings=options.settings, what=f"group {name}")
        plan = plan_group(
            group.tasks, group.clients, config=group.config, strategy=options.strategy
        )
        answer = _as_row(name, plan, group.clients, options.strategy)
        return Huge(name=name, answer=answer, plan=plan)

    found = on_workers(name, decided)
    return Huge(name=name, reject=found) if isinstance(found, Reject) else found


def on_workers(name: str, step: Callable[[], T]) -> T | Reject:
    """What a step with one huge group returns, or why the group is rejected.

    Args:
        name: of the group.
        step: runs jobs for this group only.

    Raises:
        PySparkException: Spark failed, or a worker ran out of memory.
    """
    try:
        return step()
    except RebalanceError as error:
        reason = str(error)
    except PythonException as error:
        # The last line of a worker's traceback; a disk, a lost worker are no such exception.
        lines = [line.strip() for line in str(error).splitlines() if _RAISED.match(line.strip())]
        if not lines or "MemoryError" in lines[-1]:
            raise
        reason = f"the group cannot be placed, {shown(lines[-1])}; report it with the group"
    return Reject(name=name, column="", value="", reason=reason)


def _as_row(name: str, plan: GroupPlan, clients: DataFrame, strategy: str) -> DataFrame:
    """One row per group, as for the others."""
    task = f.struct("subtopology", "partition")
    held = plan.placements.groupBy("client").agg(
        *[
            _names(f.collect_list(f.when(f.col("role") == role, task))).alias(role)
            for role in _ROLES
        ]
    )
    # Clients that got nothing are part of the answer.
    everybody = clients.select("client").join(held, "client", "left")
    none = f.array().cast("array<string>")
    placed = f.struct(*[f.coalesce(role, none).alias(role) for role in _ROLES])
    entries = f.sort_array(f.collect_list(f.struct("client", placed.alias("placed"))))
    return (
        everybody.agg(f.map_from_entries(entries).alias("clients"))
        .select(
            f.lit(name).alias("name"),
            f.lit(strategy).alias("assignor"),
            f.lit(None).cast("double").alias("millis"),
            f.lit(plan.followup).alias("probing"),
            "clients",
            f.array(*map(f.lit, plan.warnings)).cast("array<string>").alias("warnings"),
        )
        .select(*RESULT.names)
    )


def _names(tasks: Column) -> Column:
    """Sorted tasks as text."""
    return f.transform(
        f.sort_array(tasks), lambda t: f.concat_ws("_", t["subtopology"], t["partition"])
    )
