"""Groups of all sizes in partitions of equal work.

How long a group takes goes with its tasks. Groups are counted by the power of two of their tasks
(a table of a few rows, the only thing the driver sees), each such class gets as many partitions as
its share of the work, and a group one of them by the hash of its key. The largest come first, so
that the last to end are small.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_assign.tables import Groups

# Work of a group that has no tasks, in tasks.
_BASE = 16
_PARTITIONS_PER_CORE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Groups whose work has the same power of two.

    Attributes:
        power: of two.
        groups: how many.
        work: of all of them, in tasks.
        tasks_max: tasks of the largest.
    """

    power: int
    groups: int
    work: int
    tasks_max: int


def size_classes(groups: Groups) -> tuple[SizeClass, ...]:
    """The groups counted by size, largest first; reads a number of each group."""
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


def balanced(groups: Groups, classes: tuple[SizeClass, ...], *, cores: int) -> DataFrame:
    """The groups' rows, a few partitions for each core, each of about the same work."""
    start_by_power, total = partitions_of(classes, cores * _PARTITIONS_PER_CORE)
    key = f.xxhash64("value" if groups.is_text else "name")
    power = _power(groups.tasks() + f.lit(_BASE))
    place: Column = f.lit(0)
    for number, (start, count) in start_by_power.items():
        mine = f.lit(start) + f.pmod(key, f.lit(count))
        place = f.when(power == number, mine).otherwise(place)
    return groups.frame.repartitionById(total, place.cast("int"))


def partitions_of(
    classes: tuple[SizeClass, ...], wanted: int
) -> tuple[dict[int, tuple[int, int]], int]:
    """Power of a class -> (first partition, how many); and how many there are in all.

    Classes too small for a partition of their own share one with the next smaller.
    """
    target = max(1, sum(one.work for one in classes) / wanted)
    places: dict[int, tuple[int, int]] = {}
    start, room = 0, 0.0
    for one in classes:
        if one.work <= room:
            places[one.power] = (start - 1, 1)
            room -= one.work
            continue
        count = min(one.groups, max(1, round(one.work / target)))
        places[one.power] = (start, count)
        start += count
        room = target - one.work if count == 1 else 0.0
    return places, max(start, 1)


def _power(work: Column) -> Column:
    return f.floor(f.log2(work)).cast("int")
