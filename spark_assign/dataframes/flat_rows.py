"""Flat tables: one row per partition and member becomes one row per group.

This is the shape in which consumer groups are usually recorded. Every topic of a group is a
subtopology of its own, numbered by name, unless the rows number them; rows of one subtopology and
partition are one task.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from assignor.placement import LAG_RUNNING, LAG_UNKNOWN
from spark_assign.dataframes.placed_groups import CONFLICT
from spark_assign.tables import CLIENT, GROUP, TASK, BadTable, fitted, name_key

_FIELDS = (
    ("group", StringType()),
    ("topic", StringType()),
    ("partition", IntegerType()),
    ("member", StringType()),
    ("standby", BooleanType()),
    ("lag", LongType()),
    ("stateful", BooleanType()),
    ("end_offset", LongType()),
    ("weight", DoubleType()),
    ("subtopology", IntegerType()),
    ("threads", IntegerType()),
    ("rack", StringType()),
)
_REQUIRED = ("group", "topic", "partition", "member")
_TASK = ("group", "subtopology", "partition")
_OF_MEMBER = ("threads", "rack")
_OF_TASK = ("end_offset", "weight")
_OF_PARTITION = ("stateful", *_OF_TASK)
_PAIR = "a row has topic and partition, or neither"
_EXACT = "decimal(38,0)"  # a sum of any 64-bit numbers
_LARGEST = 2**31 - 1
_AS_THEY_ARE: Mapping[str, str | Column] = MappingProxyType({})


def row_schema() -> StructType:
    """The columns that `from_rows` reads; the first four are required."""
    return StructType([StructField(name, kind) for name, kind in _FIELDS])


def from_rows(rows: DataFrame, columns: Mapping[str, str | Column] = _AS_THEY_ARE) -> DataFrame:
    """A table of groups, as `place` reads it, from one row per partition and member.

    - `group`, `topic`, `partition`: what is read.
    - `member`: the client that runs it, or null. A row without topic and partition is a member that
      runs nothing.
    - `standby`: true if the member holds a copy only. `lag`: how many records it is behind.
    - `stateful`: whether the task has state, false by default; a task with a standby has state.
    - `end_offset`: records of the state, which a client without it restores. `weight`: work.
    - `subtopology`: the number of the topic's subtopology; all rows have it or none. Offsets, lags
      and weights of the topics of a task add up; without that of a topic, a sum is unknown.
    - `threads`, `rack`: of the member, in any of its rows.

    `place` rejects a partition that two members run, rows of one partition or member with different
    values, a topic with two subtopologies, and a row that is given twice. A null says nothing.

    Args:
        rows: any table.
        columns: field of `row_schema` -> column of `rows`, by name, or a Column for an expression;
            fields that are not listed are columns of that name, if there are any.

    Returns:
        Columns of `group_schema`, `config` null, `topics`: subtopology -> topics with the ranges of
        their partitions, for `to_rows` (pass keep=["topics"] to `place`), and `conflict`: what is
        wrong with the rows of the group, or null.

    Raises:
        BadTable: a required column is missing, or one is of another type.
    """
    own = _renamed(rows, columns)
    given = fitted(own, row_schema(), what="the rows", required=_REQUIRED, keeps_wide=True)
    flat = _numbered(given)
    read = flat.where("topic is not null or partition is not null")
    clients = _clients(flat)
    tasks = (
        _tasks(read)
        .groupBy("group")
        .agg(
            f.collect_list(f.struct(*TASK.names)).alias("tasks"),
            f.min("_sum").alias("_sum_conflict"),
        )
    )
    # Every group is placed or rejected: without members, without partitions, and without both.
    whole = flat.select("group").distinct()
    for part in (tasks, clients, _topics(read), _conflicts(read)):
        other = part.withColumnRenamed("group", "_group")
        same = f.col("group").eqNullSafe(f.col("_group"))
        whole = whole.join(other, same, "left").drop("_group")
    conflict = f.coalesce("_conflict", "_client_conflict", "_sum_conflict")
    # Without a list of tasks, other readers reject the group too.
    none = f.array().cast(tasks.schema["tasks"].dataType)
    listed = f.when(conflict.isNull(), f.coalesce("tasks", none))
    return whole.select(
        f.col("group").alias("name"),
        f.lit(None).cast(GROUP["config"].dataType).alias("config"),
        listed.alias("tasks"),
        "clients",
        "topics",
        conflict.cast(CONFLICT.dataType).alias(CONFLICT.name),
    )


def _numbered(rows: DataFrame) -> DataFrame:
    """The rows with `subtopology`: as given, or the place of the topic among those of the group."""
    by_name = Window.partitionBy("group").orderBy(f.col("topic").asc_nulls_last())
    given = f.count("subtopology").over(Window.partitionBy("group"))
    place = f.when(f.col("topic").isNotNull(), f.dense_rank().over(by_name) - 1)
    return rows.withColumn("subtopology", f.when(given == 0, place).otherwise(f.col("subtopology")))


def _clients(rows: DataFrame) -> DataFrame:
    """The members of each group, and the first that has rows with different values."""
    members = rows.where("member is not null").groupBy("group", "member")
    found = members.agg(
        *[f.max(name).alias(name) for name in _OF_MEMBER],
        *[f.collect_set(name).alias(f"{name}s") for name in _OF_MEMBER],
    )
    what = f.concat(f.lit("member "), "member")
    conflict = f.coalesce(*[_differing(name, what) for name in _OF_MEMBER])
    client = f.struct(
        f.col("member").alias("client"),
        *_OF_MEMBER,
        f.lit(None).cast(CLIENT["tags"].dataType).alias("tags"),
    )
    return found.groupBy("group").agg(
        f.collect_list(client).alias("clients"), f.min(conflict).alias("_client_conflict")
    )


def _conflicts(read: DataFrame) -> DataFrame:
    """The first partition of each group whose rows contradict each other."""
    key = ("group", "subtopology", "topic", "partition")
    is_standby = f.coalesce("standby", f.lit(False))  # noqa: FBT003 a value, no switch
    held = read.groupBy(*key, "member", is_standby.alias("standby")).agg(
        f.count("*").alias("n"),
        *[f.collect_set(name).alias(f"{name}s") for name in ("lag", *_OF_PARTITION)],
    )
    number = f.coalesce(f.col("partition").cast("string"), f.lit("null"))
    what = f.concat(
        f.lit("partition "), number, f.lit(" of topic "), f.coalesce("topic", f.lit("null"))
    )
    member = f.concat(f.lit(" and member "), f.coalesce("member", f.lit("null")))
    twice = f.concat(f.lit("several rows of "), what, member, f.lit("; give it once"))
    repeated = f.when(
        f.col("n") > 1,
        f.coalesce(
            _differing("lag", f.concat(what, member)),
            _conflict(f.lit("partition"), number, twice),
        ),
    )
    partitions = held.groupBy(*key).agg(
        f.min(repeated).alias("repeated"),
        *[_merged(f"{name}s") for name in _OF_PARTITION],
    )
    conflict = f.coalesce(
        _missing("topic", f.col("topic").isNull() & f.col("subtopology").isNull(), _PAIR),
        _missing("partition", f.col("partition").isNull(), _PAIR),
        _missing("subtopology", f.col("subtopology").isNull(), "other rows of the group have one"),
        *[_differing(name, what) for name in _OF_PARTITION],
        f.col("repeated"),
    )
    topics = partitions.groupBy("group", "topic").agg(
        f.min(conflict).alias("of_partition"),
        f.collect_set("subtopology").alias("subtopologys"),
    )
    has_two = _differing("subtopology", f.concat(f.lit("topic "), "topic"))
    of_topic = f.coalesce("of_partition", f.when(f.col("topic").isNotNull(), has_two))
    return topics.groupBy("group").agg(f.min(of_topic).alias("_conflict"))


def _merged(name: str) -> Column:
    return f.array_distinct(f.flatten(f.collect_list(name))).alias(name)


def _differing(name: str, what: Column) -> Column:
    """The conflict of a column with several values; null without one."""
    values = f.array_join(f.sort_array(f"{name}s").cast("array<string>"), " and ")
    reason = f.concat(f.lit("rows of "), what, f.lit(" have different values; give one"))
    return f.when(f.size(f"{name}s") > 1, _conflict(f.lit(name), values, reason))


def _missing(name: str, is_missing: Column, why: str) -> Column:
    return f.when(is_missing, _conflict(f.lit(name), f.lit("null"), f.lit(f"{why}; add it")))


def _conflict(column: Column, value: Column, reason: Column) -> Column:
    return f.struct(column.alias("column"), value.alias("value"), reason.alias("reason"))


def _renamed(rows: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame:
    """The rows with the columns under their names of `row_schema`."""
    fields = row_schema().names
    unknown = sorted(set(columns) - set(fields))
    if unknown:
        raise BadTable(f"columns: no field {', '.join(unknown)}; there are {', '.join(fields)}")
    key = name_key(rows.sparkSession)
    present = set(map(key, rows.columns))
    own = {name: name for name in fields if name in present}
    given = {name: f.col(c) if isinstance(c, str) else c for name, c in {**own, **columns}.items()}
    try:
        return rows.select(*[column.alias(name) for name, column in given.items()])
    except AnalysisException as error:
        if error.getCondition() == "AMBIGUOUS_REFERENCE":
            name = (error.getMessageParameters() or {}).get("name", "")
            raise BadTable(
                f"the rows have several columns {name}; rename or drop all but one (their columns: "
                f"{', '.join(rows.columns)})"
            ) from None
        named = ", ".join(f"{name}: {c}" for name, c in columns.items() if isinstance(c, str))
        raise BadTable(
            f"columns: a name or an expression is wrong ({named}); the rows have the columns "
            f"{', '.join(rows.columns)}; give an expression as a Column, such as "
            f"f.expr('upper(client)') ({error.getCondition()})"
        ) from None


def _tasks(read: DataFrame) -> DataFrame:
    """One row per task (`TASK`) with its group, and `_sum`, the conflict of a sum, or null.

    A task that two members run has two rows.
    """
    is_standby = f.coalesce("standby", f.lit(False))  # noqa: FBT003 a value, no switch
    copies = read.groupBy(*_TASK, "member", is_standby.alias("standby")).agg(
        _sum_if_known("lag"),
        f.collect_set(f.struct("topic")).alias("topics"),
        *[_values_of_topics(name) for name in _OF_TASK],
        f.coalesce(f.bool_or("stateful"), f.lit(False)).alias("stateful"),  # noqa: FBT003 as above
    )
    tasks = copies.groupBy(*_TASK).agg(
        f.collect_set(f.when(~f.col("standby"), f.col("member"))).alias("owners"),
        f.collect_list(f.struct("member", "standby", "lag")).alias("held"),
        (f.bool_or("stateful") | f.bool_or("standby")).alias("stateful"),
        *[_merged(name) for name in ("topics", *_OF_TASK)],
    )
    end = f.when(f.size("end_offset") == f.size("topics"), _sum_of("end_offset", _EXACT))
    lag = f.array_max(f.transform("held", lambda copy: copy["lag"]))
    too_large = f.coalesce(_too_large("end_offset", end), _too_large("lag", lag))
    held = f.filter("held", lambda copy: copy["member"].isNotNull() & f.col("stateful"))
    with_owners = tasks.select("*", f.explode_outer("owners").alias("owner"))
    none = {name: f.lit(None).cast(TASK[name].dataType) for name in TASK.names if "_racks" in name}
    columns = {
        "copies": f.transform(held, _copy).cast(TASK["copies"].dataType),
        "end_offset_sum": end.try_cast("bigint"),
        "weight": f.when(f.size("weight") > 0, _sum_of("weight", "double")),
        "_sum": too_large,
    } | none
    return with_owners.withColumns(columns).select("group", *TASK.names, "_sum")


def _copy(held: Column) -> Column:
    """A copy of a task's state; an active task without a lag is caught up."""
    running = f.when(~held["standby"], f.lit(LAG_RUNNING))
    return f.struct(
        held["member"].alias("client"),
        f.coalesce(held["lag"].try_cast("bigint"), running).alias("lag"),
        f.lit(None).cast("boolean").alias("stalled"),
    )


def _sum_if_known(name: str) -> Column:
    """The exact sum of a column; null if any value is null."""
    is_known = f.count_if(f.col(name).isNull()) == 0
    return f.when(is_known, f.sum(f.col(name).cast(_EXACT))).alias(name)


def _values_of_topics(name: str) -> Column:
    """Each topic with its value of a column, without null."""
    pair = f.struct("topic", f.col(name).alias("value"))
    return f.collect_set(f.when(f.col(name).isNotNull(), pair)).alias(name)


def _sum_of(name: str, kind: str) -> Column:
    """The sum of `_values_of_topics`, which does not depend on the order of the rows."""
    values = f.transform(f.sort_array(name), lambda pair: pair["value"].cast(kind))
    return f.aggregate(values, f.lit(0).cast(kind), lambda total, value: (total + value).cast(kind))


def _too_large(name: str, total: Column) -> Column:
    """The conflict of a sum that is no valid number; null without one."""
    most = LAG_UNKNOWN - 1
    task = f.concat(f.col("subtopology"), f.lit("_"), f.col("partition"))
    reason = f.concat(
        f.lit("the values of task "), task, f.lit(f" add up to more than {most}; correct them")
    )
    return f.when(total > most, _conflict(f.lit(name), total.cast("string"), reason))


def _topics(read: DataFrame) -> DataFrame:
    """Subtopology -> topics with the ranges of their partitions, of each group."""
    sizes = (
        read.where("topic is not null and subtopology is not null")
        .where(f.col("partition").between(0, _LARGEST))
        .groupBy("group", "subtopology", "topic")
        .agg(f.sort_array(f.collect_set(f.col("partition").cast("bigint"))).alias("numbers"))
    )
    ranges = sizes.withColumn("partitions", _ranges(f.col("numbers")))
    by_subtopology = ranges.groupBy("group", "subtopology").agg(
        f.sort_array(f.collect_list(f.struct("topic", "partitions"))).alias("topics")
    )
    entries = f.map_from_entries(f.collect_list(f.struct("subtopology", "topics")))
    return by_subtopology.groupBy("group").agg(entries.alias("topics"))


def _ranges(numbers: Column) -> Column:
    """First and last of each run of sorted numbers that follow one another."""

    def has(place: Column, number: Column) -> Column:
        return f.coalesce(f.get(numbers, place) == number, f.lit(False))  # noqa: FBT003 a value

    first = f.filter(numbers, lambda number, place: ~has(place - 1, number - 1))
    last = f.filter(numbers, lambda number, place: ~has(place + 1, number + 1))
    return f.zip_with(
        first, last, lambda low, high: f.struct(low.alias("first"), high.alias("last"))
    )
