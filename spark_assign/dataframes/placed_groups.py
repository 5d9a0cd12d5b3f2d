"""Place the groups of a DataFrame, one row each; session and other columns stay as they are.

Nothing runs before the result is used, and no setting of the session is changed. A worker gets the
rows in the batches that the session is set to (`spark.sql.execution.arrow.maxRecordsPerBatch`) and
places 64 of them at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from assignor import ConfigError
from assignor.config import config_from_mapping
from assignor.placement import Strategy, strategy_of
from spark_assign.tables import (
    ANSWER,
    GROUP,
    RESULT,
    BadTable,
    Reject,
    check_kept,
    fitted,
    name_key,
    quoted,
)
from spark_assign.workers import Batches, Kernel, Options, placing, problem_reader, table_reader

# The column that a reader of problems reads.
_PROBLEM = "value"
_TABLE = "the table of groups"
_ON_ERROR = ("fail", "reject")
# What a caller is told of a reject; files and lines are known to `spark-assign` only.
_REASON = ("column", "value", "reason")
CONFLICT = StructField(
    "conflict", StructType([StructField(name, StringType()) for name in _REASON])
)
"""The column of `from_rows` that says why a group cannot be placed, or null."""
_NO_SETTINGS: Mapping[str, object] = MappingProxyType({})


def group_schema() -> StructType:
    """The columns of a table of groups, one row per group; see `place`."""
    return StructType(GROUP.fields)


def place_schema() -> StructType:
    """The columns that `place` adds to those of `keep`; print it with `ddl_of`."""
    reject = ANSWER["reject"].dataType
    reasons = StructType([reject[name] for name in _REASON])  # type: ignore[index]  # a struct
    return StructType([*RESULT.fields, StructField("reject", reasons)])


def place(
    groups: DataFrame,
    *,
    strategy: Strategy | str = "high_availability",
    config: Mapping[str, object] = _NO_SETTINGS,
    keep: Sequence[str] = (),
    on_error: str = "fail",
    problem: str | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Assign the tasks of each group, as `assignor assign` does; one row out for each row in.

    Args:
        groups: one row per group. Its columns `name`, `tasks`, `clients` and, if it has one,
            `config` are read (`group_schema`); integers may have any width, and optional columns
            and fields may be missing.
        strategy: a name, MODULE:CALLABLE that workers can import, or a function.
        config: Kafka-style settings; they override those of the groups.
        keep: other columns of `groups` that the result has too.
        on_error: what an invalid group does: `fail` fails the query and names the group; with
            `reject`, its row has the reason in the column `reject` and no clients.
        problem: a column of texts, one problem file's line each, which are read instead of the
            columns above.
        partitions: of the result; by default Spark decides by `spark.sql.shuffle.partitions` and
            AQE. A row is never split: a group of more than 100,000 tasks belongs to `spark-assign`.

    Returns:
        The columns of `keep`, then those of `place_schema`: the clients with their tasks, and the
        measures of the assignment (docs/glossary.md).

    Raises:
        BadTable: a column is missing, has another type, or is in `keep` and in the result.
        ConfigError: there is no such strategy or setting, or `on_error` is another word.
    """
    _check_arguments(groups, keep, problem, partitions)
    if on_error not in _ON_ERROR:
        raise ConfigError(f"on_error={on_error!r} is refused: give 'fail' or 'reject'")
    strategy_of(strategy)
    config_from_mapping(config)
    options = Options(strategy=strategy, settings=_frozen(config), stop_at_reject=False)
    key = name_key(groups.sparkSession)
    kept = check_kept(groups.schema, keep, what=_TABLE, key=key)
    own = _own_names(groups.columns, len(kept))
    rows = _readable(groups, dict(zip(own, kept, strict=True)), problem)
    group = f.col("name" if problem is None else _PROBLEM)
    spread = rows.repartition(group) if partitions is None else rows.repartition(partitions, group)
    schema = StructType([*kept, *place_schema()])
    names = dict(zip(own, [field.name for field in kept], strict=True))
    has_conflicts = CONFLICT.name in rows.columns
    kernel = _kernel(options, names, problem, on_error, has_conflicts=has_conflicts)
    return spread.mapInArrow(kernel, schema)


def _check_arguments(groups: object, keep: object, problem: object, partitions: object) -> None:
    """Check the types of arguments, which Spark would reject with errors of its own.

    Raises:
        BadTable: one has another type, or no partition is wanted.
    """
    if not isinstance(groups, DataFrame):
        raise BadTable(f"groups is {type(groups).__name__}; give a DataFrame of Spark")
    if isinstance(keep, str):
        raise BadTable(f"keep={keep!r} is a text; give a list of columns, as keep=[{keep!r}]")
    if not isinstance(keep, Sequence) or any(not isinstance(name, str) for name in keep):
        raise BadTable(f"keep={keep!r} has values that are no texts; give names of columns")
    if not isinstance(problem, str | None):
        raise BadTable(f"problem={problem!r} is no text; give the name of a column")
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise BadTable(f"partitions={partitions!r} is refused: give a whole number, 1 or more")


def _frozen(config: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Settings that can be a key of a cache."""
    return tuple(
        (key, tuple(value) if isinstance(value, list) else value) for key, value in config.items()
    )


def _readable(groups: DataFrame, own: Mapping[str, StructField], problem: str | None) -> DataFrame:
    """The columns that workers read, and those to keep under names that mean nothing to a reader.

    Args:
        groups: the table.
        own: such a name -> column to keep.
        problem: the column of problems, if they are read.

    Raises:
        BadTable: a column is missing or of another type.
    """
    aliases = [f.col(quoted(field.name)).alias(name) for name, field in own.items()]
    if problem is None:
        fields = [StructField(name, field.dataType) for name, field in own.items()]
        if CONFLICT.simpleString() in [field.simpleString() for field in groups.schema]:
            fields.append(CONFLICT)
        given = groups.select("*", *aliases)
        return fitted(given, StructType([*GROUP, *fields]), what=_TABLE, keeps_wide=True)
    key = name_key(groups.sparkSession)
    kinds = {key(field.name): field.dataType for field in groups.schema}
    kind = kinds.get(key(problem))
    if not isinstance(kind, StringType | BinaryType):
        what = "is missing" if kind is None else f"is {kind.simpleString()}, it must be string"
        have = ", ".join(groups.columns)
        raise BadTable(f"{_TABLE}: column {problem} {what} (its columns: {have})")
    return groups.select(*aliases, f.col(quoted(problem)).alias(_PROBLEM))


def _own_names(taken: Sequence[str], count: int) -> list[str]:
    """Names that no column of a table has, capitals or not."""
    prefix = "_kept_"
    while any(name.lower().startswith(prefix) for name in taken):
        prefix = f"_{prefix}"
    return [f"{prefix}{number}" for number in range(count)]


def _kernel(
    options: Options,
    kept: Mapping[str, str],
    problem: str | None,
    on_error: str,
    *,
    has_conflicts: bool,
) -> Kernel:
    """The function for `mapInArrow`; every row of a batch yields one row.

    `kept` has the names of columns to keep, by those under which they are read.
    """
    read = table_reader(options) if problem is None else problem_reader(options)
    own, names = list(kept), [*kept.values(), *RESULT.names, "reject"]
    read_too = [*own, *[CONFLICT.name] * has_conflicts]

    def place_rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for answers in placing(options, read, keep=read_too)(batches):
            rejects = _reasons(answers.column("reject"))
            if has_conflicts:
                conflicts = answers.column(CONFLICT.name)
                rejects = pc.if_else(conflicts.is_null(), rejects, conflicts.cast(rejects.type))
            if on_error == "fail":
                _raise_first(answers.column("name"), rejects)
            found = [answers.column(name) for name in (*own, *RESULT.names)]
            yield pa.RecordBatch.from_arrays([*found, rejects], names)

    return place_rows


def _raise_first(names: pa.Array, rejects: pa.StructArray) -> None:
    """Raise the first reject of a batch.

    Raises:
        BadTable: there is one.
    """
    if rejects.null_count == len(rejects):
        return
    rows = zip(names.to_pylist(), rejects.to_pylist(), strict=True)
    name, first = next((name, row) for name, row in rows if row is not None)
    raise BadTable(f"{Reject(name=name, **first)} (on_error='reject' places the others)")


def _reasons(rejects: pa.StructArray) -> pa.StructArray:
    """The rejects without their places."""
    parts = [rejects.field(name) for name in _REASON]
    return pa.StructArray.from_arrays(parts, list(_REASON), mask=rejects.is_null())
