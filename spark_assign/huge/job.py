"""One huge group as a job on counts: counts go to the driver, decisions come back, tasks stay.

The driver sees clients, classes and counts by (client, pool), and never a task. Workers read the
task table once and leave what matters of it on their disks, a dozen bytes a task; one to three
passes over that follow, and the last one answers a row for each copy. A plan depends on the order
of the rows inside the files and of the files by their first task, so a table sorted by task gives
the same plan however it is cut.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark import Broadcast, StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from assignor import AssignmentConfig, ConfigError
from spark_assign.huge.checks import check_tasks, refuse_wrong_row, too_many_subtopologies
from spark_assign.huge.driver.decide import Counted, decide
from spark_assign.huge.group import RACK_COSTS, STRATEGIES, Group
from spark_assign.huge.tables import group_of
from spark_assign.huge.worker.answer import COSTS, PLACED
from spark_assign.huge.worker.chunk import COUNTED, PACKED, STORED, Known, Plans
from spark_assign.huge.worker.passes import Pass, counting, packing, placing
from spark_assign.huge.worker.rows import Reading, reduced
from spark_assign.huge.worker.standbys import Pools
from spark_assign.tables import BY_NAME, CLIENT, PLACEMENT, TASK, fitted

Make = Callable[[Broadcast[Known]], Pass]
# Copies of a task that get columns of their own beyond its active one and its standbys.
_SPARE = 1
_WIDEST = 8
_ARROW_ROWS = 65_536
_NO_LIMIT = 2**31 - 1
# Packed rows are few and large; so many bytes of them are handed over at a time, or one.
_PACKED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupPlan:
    """A plan, decided and not yet computed: reading `placements` runs the last pass.

    Attributes:
        placements: a row for each copy of each task, in the schema `schemas.PLACEMENT`.
        counts: what the last pass counts, once it has run.
        tasks, clients: how many.
        moved: tasks that leave a home for good, once all has settled.
        followup: whether a probing rebalance is wanted while copies warm up.
        rack_bound, rack_cost: least rack cost with these quotas, and the plan's own once settled.
        given: standbys given up for balance.
        above: standbys that no client within its band can hold.
        passes: over the rows of the group; the first one reads the table.
        warnings: what could not be had, and why.
        packed: the rows of the group, on the disks of the workers.
    """

    placements: DataFrame
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

    def release(self) -> None:
        """Free the disks of the workers, once the placements have been written."""
        self.packed.unpersist()


def plan_group(
    tasks: DataFrame,
    clients: DataFrame,
    *,
    config: AssignmentConfig | None = None,
    strategy: str = "high_availability",
) -> GroupPlan:
    """Decide where every task of one group goes.

    Args:
        tasks: one row per task, in the schema `schemas.TASK`; read again where a worker is lost, so
            give what is stored, and not what is computed.
        clients: one row per client, in the schema `schemas.CLIENT`.
        config: settings.
        strategy: high_availability, or sticky for a plan that moves everything at once.

    Raises:
        BadTable: a column is missing or of another type, or a row makes no sense; the message says
            which.
        ConfigError: another strategy.
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
    """Without the column that tells groups apart: here there is one."""
    return frame.drop("name") if "name" in frame.columns else frame


def _set_up(spark: SparkSession, batch_bytes: int) -> None:
    """How rows are handed over; it stays set, for the last pass runs later."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
    # With a limit Spark weighs a batch anew for each of its rows.
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(batch_bytes))
    if spark.conf.get("spark.sql.files.minPartitionNum", None) is None:
        # Otherwise the cut into chunks depends on how many executors there are at the moment.
        cores = str(spark.sparkContext.defaultParallelism)
        spark.conf.set("spark.sql.files.minPartitionNum", cores)


def _job(tasks: DataFrame, group: Group, warnings: tuple[str, ...]) -> GroupPlan:
    """The passes of one plan, and the frame of the last one."""
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

    said = list(warnings)

    def check(first: Counted) -> None:
        if first.wrong:
            refuse_wrong_row(tasks, group, first.wrong)
        check_tasks(tasks, first.tasks)
        said.extend(too_many_subtopologies(group, first.tasks))

    try:
        decided = decide(group, pools, count, check)
    except BaseException:
        stored.unpersist()
        raise
    counts = Observation("group")
    frame = _observed(run(placing, decided.plans, stored.select(*STORED), PLACED), counts)
    copies = decided.copies
    return GroupPlan(
        placements=frame,
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
        warnings=tuple(said),
        packed=stored,
    )


def _observed(frame: DataFrame, counts: Observation) -> DataFrame:
    """The placements, and what they cost, added up while they are written."""
    sums = [
        sql.coalesce(sql.sum(sql.get("costs", sql.lit(place))), sql.lit(0)).alias(name)
        for place, name in enumerate(COSTS)
    ]
    return frame.observe(counts, *sums).select(*PLACEMENT.names)
