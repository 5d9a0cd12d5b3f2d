"""Plan one huge group: workers count tasks, the driver decides on counts, workers place the tasks.

The driver holds clients, classes and counts by (client, pool), but no tasks. Workers read the task
table once and keep about a dozen bytes per task on their disks. One to three passes over these rows
follow; the last one yields a row for each copy. A plan depends on the order of the rows in a file,
and on the order of the files by their first task. So the plan of a sorted table does not depend on
how the table is split into files.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark import Broadcast, StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from assignor import AssignmentConfig, ConfigError
from spark_assign.huge.checks import check_tasks, refuse_wrong_row, too_many_subtopologies
from spark_assign.huge.driver.decide import Counted, decide
from spark_assign.huge.driver.gain import GroupGain
from spark_assign.huge.group import RACK_COSTS, STRATEGIES, Group
from spark_assign.huge.tables import group_of
from spark_assign.huge.worker.answer import COSTS, PLACED
from spark_assign.huge.worker.chunk import COUNTED, PACKED, STORED, Known, Plans
from spark_assign.huge.worker.passes import Pass, counting, packing, placing
from spark_assign.huge.worker.rows import Reading, reduced
from spark_assign.huge.worker.standbys import Pools
from spark_assign.tables import BY_NAME, CLIENT, PLACEMENT, TASK, fitted

Make = Callable[[Broadcast[Known]], Pass]
# Copies of a task that get columns, besides the active one and the standbys.
_SPARE = 1
_WIDEST = 8
_ARROW_ROWS = 65_536
_NO_LIMIT = 2**31 - 1
# Bytes of an Arrow batch of packed rows, which are few and large; at least one row.
_PACKED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HugeGroupPlan:
    """A plan, decided and not yet computed: reading `placements` runs the last pass.

    Attributes:
        placements: a row for each copy of each task, in the schema `schemas.PLACEMENT`.
        costed: the same with a column `costs`, the numbers of `COSTS`; null in most rows.
        counts: the costs that the last pass counts; `sums` has them once it has run.
        tasks, clients: their numbers.
        moved: tasks that leave their home once the group has settled.
        followup: whether a probing rebalance is wanted while copies warm up.
        rack_bound, rack_cost: minimal rack cost with these quotas, and the cost of the plan once
            settled.
        given: standbys that move for balance.
        above: standbys placed above the load band of their client.
        passes: number of passes over the rows of the group; the first one reads the table.
        warnings: settings that could not be met, and why.
        packed: the rows of the group, on the disks of the workers.
        gain: how even the tasks are before and once settled.
    """

    placements: DataFrame
    costed: DataFrame
    counts: Observation
    tasks: int
    clients: int
    moved: int
    followup: bool
    rack_bound: int
    rack_cost: int
    given: int
    above: int
    passes: int
    warnings: tuple[str, ...]
    packed: DataFrame
    gain: GroupGain

    def sums(self) -> dict[str, int]:
        """The sum of each of `COSTS`; waits until the placements have been read."""
        batches = self.counts.get["costs"]
        return {name: sum(costs[number] for costs in batches) for number, name in enumerate(COSTS)}

    def release(self) -> None:
        """Delete the packed rows; call it once the placements are written."""
        self.packed.unpersist()


def plan_group(
    tasks: DataFrame,
    clients: DataFrame,
    *,
    config: AssignmentConfig | None = None,
    strategy: str = "high_availability",
) -> HugeGroupPlan:
    """Decide where every task of one group goes.

    Args:
        tasks: one row per task, in the schema `schemas.TASK`. It is read again if a worker is lost,
            so pass a stored table, not a computed one.
        clients: one row per client, in the schema `schemas.CLIENT`.
        config: settings.
        strategy: high_availability, or sticky for a plan that moves everything at once.

    Raises:
        BadTable: a column is missing or of another type, or a row is invalid; the message names it.
        ConfigError: the strategy cannot place a huge group.
    """
    if strategy not in STRATEGIES:
        raise ConfigError(
            f"strategy {strategy!r} cannot place a huge group; use one of {', '.join(STRATEGIES)}"
        )
    traffic, overlap = RACK_COSTS[strategy]
    given = config or AssignmentConfig()
    given = given.with_rack_costs(traffic=traffic, non_overlap=overlap)
    spark = tasks.sparkSession
    tasks = fitted(_unnamed(tasks), TASK, what="the tasks", as_stored=BY_NAME)
    clients = fitted(_unnamed(clients), CLIENT, what="the clients")
    _set_up(spark, _NO_LIMIT)
    group, warnings = group_of(tasks, clients, given, strategy)
    return _job(tasks, group, warnings)


def _unnamed(frame: DataFrame) -> DataFrame:
    """The table without the column `name` of the group."""
    return frame.drop("name") if "name" in frame.columns else frame


def _set_up(spark: SparkSession, batch_bytes: int) -> None:
    """Set the sizes of Arrow batches; they stay set, because the last pass runs later."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
    # With a limit Spark computes the size of a batch again for each row.
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(batch_bytes))
    if spark.conf.get("spark.sql.files.minPartitionNum", None) is None:
        # Otherwise the split into chunks depends on the current number of executors.
        cores = str(spark.sparkContext.defaultParallelism)
        spark.conf.set("spark.sql.files.minPartitionNum", cores)


def _job(tasks: DataFrame, group: Group, warnings: tuple[str, ...]) -> HugeGroupPlan:
    """Run all passes but the last; return the plan with the table of the last one."""
    pools = Pools.of(group)
    reading = Reading(
        width=min(_WIDEST, 1 + group.standbys + _SPARE),
        with_stalled=group.strategy == "high_availability",
        with_racks=group.has_rack_costs,
    )
    spark = tasks.sparkSession
    passes = 0

    def run(make: Make, plans: Plans, rows: DataFrame, schema: pa.Schema) -> DataFrame:
        nonlocal passes
        passes += 1
        known = Known(group=group, pools=pools, reading=reading, plans=plans)
        kernel = make(spark.sparkContext.broadcast(known))
        return rows.mapInArrow(kernel, from_arrow_schema(schema))

    stored = run(packing, Plans(), reduced(tasks, reading), PACKED).persist(StorageLevel.DISK_ONLY)

    def count(plans: Plans) -> pa.Table:
        if plans.actives is not None or plans.taking is not None:
            return run(counting, plans, stored.select(*STORED), COUNTED).toArrow()
        counts = stored.where(sql.col("data").isNull()).select(*COUNTED.names).toArrow()
        _set_up(spark, _PACKED_BYTES)
        return counts

    all_warnings = list(warnings)

    def check(first: Counted) -> None:
        if first.wrong:
            refuse_wrong_row(tasks, group, first.wrong)
        check_tasks(tasks, first.tasks)
        all_warnings.extend(too_many_subtopologies(group, first.tasks))

    try:
        decided = decide(group, pools, count, check)
    except BaseException:
        stored.unpersist()
        raise
    counts = Observation("group")
    frame = _observed(run(placing, decided.plans, stored.select(*STORED), PLACED), counts)
    copies = decided.copies
    return HugeGroupPlan(
        placements=frame.select(*PLACEMENT.names),
        costed=frame,
        counts=counts,
        tasks=decided.tasks,
        clients=len(group.clients),
        moved=decided.actives.moved,
        followup=decided.followup,
        rack_bound=decided.actives.bound,
        rack_cost=decided.actives.cost,
        given=0 if copies is None else copies.given,
        above=0 if copies is None else copies.above,
        passes=passes,
        warnings=tuple(all_warnings),
        packed=stored,
        gain=decided.gain,
    )


def _observed(frame: DataFrame, counts: Observation) -> DataFrame:
    """The placements with their costs, which are collected while they are read.

    A sum of each cost takes Spark as long, for every row, as writing it.
    """
    return frame.observe(counts, sql.collect_list("costs").alias("costs"))


def cost(name: str) -> Column:
    """The sum of one of `COSTS` over placements with a column `costs`."""
    number = sql.get("costs", sql.lit(COSTS.index(name)))
    return sql.coalesce(sql.try_sum(number), sql.lit(0))
