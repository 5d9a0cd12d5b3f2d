"""Distribute groups of all sizes over partitions of about equal work.

The time for a group grows with its tasks. Groups are counted by the power of two of their tasks;
the driver sees these few counts only. Each size class gets partitions in proportion to its work,
and a hash assigns a group to one of them. Partitions with the largest groups run first.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_assign.tables import Groups

# Fixed work of a group, in tasks.
_BASE = 16
_PARTITIONS_PER_CORE = 6
# Rows of an Arrow batch, of which a row is a whole group; and bytes.
_BATCH_ROWS = 256
_BATCH_BYTES = 1 << 25
# Bytes of a file that a Spark task reads.
_PART_LEAST, _PART_MOST = 1 << 20, 1 << 27
# What Spark adds to the size of each file when it packs small ones into a task.
_FILE_COST = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Groups whose work has the same power of two.

    Attributes:
        power: the exponent.
        groups: number of groups.
        work: of all these groups, in tasks.
        tasks_max: tasks of the largest group.
    """

    power: int
    groups: int
    work: int
    tasks_max: int


def size_classes(groups: Groups) -> tuple[SizeClass, ...]:
    """Count the groups by size, largest first."""
    work = groups.tasks() + f.lit(_BASE)
    counted = (
        groups.frame.select(_power(work).alias("power"), work.alias("work"))
        .groupBy("power")
        .agg(f.count("*").alias("n"), f.sum("work").alias("work"), f.max("work").alias("most"))
        .collect()
    )
    return tuple(
        SizeClass(power=row.power, groups=row.n, work=row.work, tasks_max=row.most - _BASE)
        for row in sorted(counted, key=lambda row: -int(row.power))
    )


def set_batch_rows(spark: SparkSession) -> None:
    """Let workers get few groups at a time."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_BATCH_ROWS))
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_BATCH_BYTES))


def set_partition_bytes(spark: SparkSession, total: int) -> None:
    """Let Spark read files in parts of equal bytes, a few for each core, by `set_batch_rows`.

    Args:
        spark: the session; the caller restores its settings.
        total: bytes of all files.
    """
    parts = spark.sparkContext.defaultParallelism * _PARTITIONS_PER_CORE
    size = min(max(total // parts + 1, _PART_LEAST), _PART_MOST)
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    spark.conf.set("spark.sql.files.openCostInBytes", str(_FILE_COST))
    set_batch_rows(spark)


def set_whole_files(spark: SparkSession, largest: int) -> None:
    """Let one Spark task read each file.

    Args:
        spark: the session; the caller restores its settings.
        largest: bytes of the largest file.
    """
    for key in ("maxPartitionBytes", "openCostInBytes"):
        spark.conf.set(f"spark.sql.files.{key}", str(largest + 1))
    set_batch_rows(spark)


def spread_rows(frame: DataFrame) -> DataFrame:
    """The rows in a few partitions for each core, by a hash of their texts."""
    cores = frame.sparkSession.sparkContext.defaultParallelism
    return frame.repartition(cores * _PARTITIONS_PER_CORE, "value")


def balanced(groups: Groups, classes: tuple[SizeClass, ...], *, cores: int) -> DataFrame:
    """The rows of the groups in a few partitions for each core, of about equal work."""
    start_by_power, total = partitions_of(classes, cores * _PARTITIONS_PER_CORE)
    key = f.xxhash64("value" if groups.is_text else "name")
    power = _power(groups.tasks() + f.lit(_BASE))
    partition: Column = f.lit(0)
    for number, (start, count) in start_by_power.items():
        of_class = f.lit(start) + f.pmod(key, f.lit(count))
        partition = f.when(power == number, of_class).otherwise(partition)
    return groups.frame.repartitionById(total, partition.cast("int"))


def partitions_of(
    classes: tuple[SizeClass, ...], wanted: int
) -> tuple[dict[int, tuple[int, int]], int]:
    """Partitions of each class, power -> (first, number), and the number of all partitions.

    A class too small for a whole partition shares one with the next smaller class.
    """
    target = max(1, sum(size.work for size in classes) / wanted)
    places: dict[int, tuple[int, int]] = {}
    start, spare_work = 0, 0.0
    for size in classes:
        if size.work <= spare_work:
            places[size.power] = (start - 1, 1)
            spare_work -= size.work
            continue
        count = min(size.groups, max(1, round(size.work / target)))
        places[size.power] = (start, count)
        start += count
        spare_work = target - size.work if count == 1 else 0.0
    return places, max(start, 1)


def _power(work: Column) -> Column:
    return f.floor(f.log2(work)).cast("int")
