"""Schemas of the input and output tables, and the check of a table's columns.

Input has two shapes. A *group table* has one row per group, with tasks and clients nested. A *state
directory* has one row per task (`tasks/`) and one per client (`clients/`), for groups too large for
a row. Task and client rows are the same in both. Problem files (JSON lines) are read as text, by
the reader of `assignor assign`.

A lag is -1 where the task runs, null where it is unknown, else the number of records behind. Copies
that are not listed do not exist.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from assignor.problems import Measures
from spark_assign.tables.errors import BadTable

_TEXT, _NUMBER = StringType(), LongType()
_RACKS = ArrayType(ArrayType(StringType()))
_TYPES: dict[Any, DataType] = {str: StringType(), int: LongType(), float: DoubleType()}


Key = Callable[[str], str]


def schema_of(declared: type[Any]) -> StructType:
    """The Spark schema of a dataclass of texts, numbers and such dataclasses, all nullable.

    >>> schema_of(Measures)["worth"].simpleString()
    'worth:double'
    """
    hints = get_type_hints(declared)
    return StructType(
        [StructField(field.name, _spark_type(hints[field.name])) for field in fields(declared)]
    )


def _spark_type(hint: Any) -> DataType:
    """The Spark type of a field's annotation; `X | None` is X."""
    [python_type] = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    return _TYPES[python_type] if python_type in _TYPES else schema_of(python_type)


COPY = StructType(
    [
        StructField("client", _TEXT),
        StructField("lag", _NUMBER),
        # Whether the lag has not decreased since the last rebalance.
        StructField("stalled", BooleanType()),
    ]
)
TASK = StructType(
    [
        StructField("subtopology", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("stateful", BooleanType()),
        StructField("owner", _TEXT),
        StructField("copies", ArrayType(COPY)),
        StructField("end_offset_sum", _NUMBER),
        StructField("weight", DoubleType()),
        StructField("partition_racks", _RACKS),
        StructField("changelog_racks", _RACKS),
    ]
)
CLIENT = StructType(
    [
        StructField("client", _TEXT),
        StructField("threads", IntegerType()),
        StructField("rack", _TEXT),
        StructField("tags", MapType(_TEXT, _TEXT)),
    ]
)
GROUP = StructType(
    [
        StructField("name", _TEXT),
        StructField("config", MapType(_TEXT, _TEXT)),
        StructField("tasks", ArrayType(TASK)),
        StructField("clients", ArrayType(CLIENT)),
    ]
)
PLACED = StructType(
    [
        StructField("active", ArrayType(_TEXT)),
        StructField("standby", ArrayType(_TEXT)),
        StructField("warmup", ArrayType(_TEXT)),
    ]
)
MEASURES = schema_of(Measures)
RESULT = StructType(
    [
        StructField("name", _TEXT),
        StructField("assignor", _TEXT),
        StructField("millis", DoubleType()),
        StructField("probing", BooleanType()),
        StructField("clients", MapType(_TEXT, PLACED)),
        StructField("warnings", ArrayType(_TEXT)),
        # Null in plans that were written without them.
        StructField("measures", MEASURES),
    ]
)
# The columns of an answer: the result, or why there is none.
ANSWER_NAMES = (*RESULT.names, "reject")
# One row per copy placed: what the job for one huge group writes.
PLACEMENT = StructType(
    [
        StructField("subtopology", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("client", _TEXT),
        StructField("role", _TEXT),
    ]
)

# Lists that the job for one huge group reads by field names; see `fitted`.
BY_NAME = MappingProxyType({"copies": ("client", "lag")})

# All other columns are optional; a missing one is null.
_REQUIRED = frozenset(
    {
        "name",
        "tasks",
        "clients",
        "client",
        "subtopology",
        "partition",
        "stateful",
        "tasks.subtopology",
        "tasks.partition",
        "tasks.stateful",
        "clients.client",
    }
)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_WIDER = {"int": _INTEGERS, "bigint": _INTEGERS, "double": (*_INTEGERS, "float", "double")}


def fitted(
    frame: DataFrame,
    wanted: StructType,
    *,
    what: str,
    as_stored: Mapping[str, Collection[str]] = MappingProxyType({}),
    required: Collection[str] = _REQUIRED,
    keeps_wide: bool = False,
) -> DataFrame:
    """The table with the columns of a schema, in its order; missing optional columns are null.

    Names match as in Spark: capitals count only with `spark.sql.caseSensitive`. Checks the schema
    only; no job runs. Narrower and wider integers are cast; in ANSI mode a number
    that does not fit fails the job.

    Args:
        frame: any table.
        wanted: the schema.
        what: how messages call the table.
        as_stored: lists of structs that are not cast if they have these fields, for readers that
            access fields by name; Spark rebuilds a list that it casts, row by row.
        required: columns that must be there, nested ones with their path.
        keeps_wide: leave `bigint` columns where `int` is wanted, for readers that reject rows with
            too large numbers.

    Raises:
        BadTable: a required column is missing, or a column has another type; names them all.
    """
    key = name_key(frame.sparkSession)
    wrong = list(_differences(frame.schema, wanted, "", required, key))
    if wrong:
        have = ", ".join(field.name for field in frame.schema)
        raise BadTable(f"{what}: {'; '.join(wrong)} (its columns: {have or 'none'})")
    stored = {
        field.name: field
        for field in frame.schema
        if field.name in as_stored
        and set(as_stored[field.name]) <= set(_names(field.dataType))
        and _has_plain_names(field.dataType, wanted[field.name].dataType)
    }
    wanted = StructType([stored.get(field.name, field) for field in wanted])
    if keeps_wide:
        wanted = _with_wide(frame.schema, wanted, key)
    return frame if frame.schema == wanted else frame.to(wanted)


def _names(kind: DataType) -> Sequence[str]:
    """The fields of a list of structs."""
    element = kind.elementType if isinstance(kind, ArrayType) else kind
    return element.names if isinstance(element, StructType) else ()


def _has_plain_names(given: DataType, wanted: DataType) -> bool:
    """Whether no field of a list of structs differs by capitals only from the wanted one."""
    known = _names(wanted)
    return all(name in known for name in _names(given) if name.lower() in known)


def name_key(spark: SparkSession) -> Key:
    """The function under which names of one column are equal for a session."""
    return str if spark.conf.get("spark.sql.caseSensitive") == "true" else str.lower


def _differences(
    given: StructType, wanted: StructType, prefix: str, required: Collection[str], key: Key
) -> Iterator[str]:
    """What is missing, twice there or of another type, as sentences."""
    for field in wanted:
        name = f"{prefix}{field.name}"
        found = [other for other in given if key(other.name) == key(field.name)]
        if len(found) > 1:
            names = " and ".join(f"{prefix}{other.name}" for other in found)
            yield f"columns {names} have one name for Spark; rename one"
        elif found:
            yield from _mismatches(found[0].dataType, field.dataType, name, required, key)
        elif name in required:
            yield f"column {name} ({field.dataType.simpleString()}) is missing"


def _mismatches(
    given: DataType, wanted: DataType, name: str, required: Collection[str], key: Key
) -> Iterator[str]:
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        yield from _mismatches(given.elementType, wanted.elementType, name, required, key)
    elif isinstance(given, StructType) and isinstance(wanted, StructType):
        yield from _differences(given, wanted, f"{name}.", required, key)
    elif not _is_readable(given, wanted):
        yield (
            f"column {name} is {given.simpleString()}, it must be {wanted.simpleString()}; "
            "cast it when you write the table"
        )


def _is_readable(given: DataType, wanted: DataType) -> bool:
    have, want = given.simpleString(), wanted.simpleString()
    # A column of nulls only, from JSON or pandas, has no type.
    return have in ("void", want) or have in _WIDER.get(want, ())


def _with_wide(given: StructType, wanted: StructType, key: Key) -> StructType:
    """The wanted columns, with `bigint` in place of `int` where that is given."""
    have = {key(field.name): field.dataType for field in given}
    kinds = [_wide(have.get(key(field.name)), field.dataType, key) for field in wanted]
    return StructType([StructField(*pair) for pair in zip(wanted.names, kinds, strict=True)])


def _wide(given: DataType | None, wanted: DataType, key: Key) -> DataType:
    if isinstance(given, LongType) and isinstance(wanted, IntegerType):
        return given
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(_wide(given.elementType, wanted.elementType, key))
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        return _with_wide(given, wanted, key)
    return wanted


def quoted(name: str) -> str:
    """The name of a column as an expression; it may hold dots.

    >>> quoted("owner.team")
    '`owner.team`'
    """
    return f"`{name.replace('`', '``')}`"


def ddl_of(schema: StructType) -> str:
    """A schema as DDL, one column a line; `StructType.fromDDL` reads it back.

    >>> print(ddl_of(StructType([StructField("a", IntegerType()), StructField("b", _RACKS)])))
    a int,
    b array<array<string>>
    """
    return ",\n".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
