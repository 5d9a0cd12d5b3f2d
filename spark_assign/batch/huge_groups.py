"""Groups too big for one worker, out of a table of groups: each placed by all workers together."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from encoding import RebalanceError
from spark_assign.huge import GroupPlan, in_rows, nested_groups, plan_group
from spark_assign.tables import RESULT, Groups, Reject
from spark_assign.workers import Options

_ROLES = ("active", "standby", "warmup")
# Each costs a few jobs of its own; whoever has more should raise the threshold.
MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Huge:
    """A huge group, decided.

    Attributes:
        name: of the group.
        answer: one row in the schema `schemas.RESULT`, or None where it was rejected.
        plan: what was decided; its counts are there once the answer has been written.
        reject: why it makes no sense.
    """

    name: str
    answer: DataFrame | None = None
    plan: GroupPlan | None = None
    reject: Reject | None = None


def split(groups: Groups, huge_tasks: int) -> tuple[Groups, Groups]:
    """The groups of at most so many tasks, and the others."""
    is_huge = groups.tasks() > huge_tasks
    small, large = groups.frame.where(~is_huge), groups.frame.where(is_huge)
    return (
        Groups(frame=small, is_text=groups.is_text),
        Groups(frame=large, is_text=groups.is_text),
    )


def placed_huge(groups: Groups, options: Options) -> Iterator[Huge]:
    """Each of these groups, one after another, by name; write each before you take the next."""
    nested = nested_groups(groups).persist(StorageLevel.DISK_ONLY)
    try:
        names = [row.name for row in nested.select("name").orderBy("name").limit(MOST).collect()]
        for name in names:
            one = _one(nested.where(f.col("name").eqNullSafe(name)), name or "", options)
            yield one
            if one.plan is not None:
                one.plan.release()
    finally:
        nested.unpersist()


def _one(nested: DataFrame, name: str, options: Options) -> Huge:
    try:
        group = in_rows(nested, settings=options.settings, what=f"group {name}")
        plan = plan_group(
            group.tasks, group.clients, config=group.config, strategy=options.strategy
        )
    except RebalanceError as error:
        return Huge(name=name, reject=Reject(name=name, column="", value="", reason=str(error)))
    answer = _as_row(name, plan, group.clients, options.strategy)
    return Huge(name=name, answer=answer, plan=plan)


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
