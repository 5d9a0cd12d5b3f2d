"""The tables of the job: what goes in, what comes out, and the check of a table's columns.

One schema in two shapes. A *group table* has one row per group, with its tasks and clients nested;
a *state directory* has one row per task (`tasks/`) and one per client (`clients/`), for groups too
big for a row. Task and client rows are the same in both. Problem files (JSON lines) are read as
text, by the reader of `assignor assign`.

Lags are numbers: -1 the task runs there, null unknown, else records behind. Copies that are not
listed do not exist.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import DataFrame
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

from spark_assign.tables.errors import BadTable

_TEXT, _NUMBER = StringType(), LongType()
_RACKS = ArrayType(ArrayType(StringType()))

COPY = StructType(
    [
        StructField("client", _TEXT),
        StructField("lag", _NUMBER),
        # Behind, and no nearer than at the rebalance before.
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
RESULT = StructType(
    [
        StructField("name", _TEXT),
        StructField("assignor", _TEXT),
        StructField("millis", DoubleType()),
        StructField("probing", BooleanType()),
        StructField("clients", MapType(_TEXT, PLACED)),
        StructField("warnings", ArrayType(_TEXT)),
    ]
)
REJECT = StructType(
    [
        StructField("name", _TEXT),
        StructField("column", _TEXT),
        StructField("value", _TEXT),
        StructField("reason", _TEXT),
        # File and row, or file and line, where the input is of files.
        StructField("place", _TEXT),
    ]
)
# One row per copy placed: what the job for one huge group writes.
PLACEMENT = StructType(
    [
        StructField("subtopology", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("client", _TEXT),
        StructField("role", _TEXT),
    ]
)

# Lists that the job for one huge group reads by the names of their fields; see `fitted`.
BY_NAME = MappingProxyType({"copies": ("client", "lag")})

# Whatever is not named here may be missing, and is then null.
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
) -> DataFrame:
    """The table with exactly the columns of a schema, in its order; missing optional ones are null.

    Only the schema is looked at, nothing is computed. Narrower and wider integers are cast; under
    ANSI a number that does not fit fails the job and is not cut.

    Args:
        frame: any table.
        wanted: the schema.
        what: how messages call the table.
        as_stored: lists of structs that stay as they are, wherever they have these fields, for
            whoever takes fields by name: to fit such a list Spark rebuilds it row by row.

    Raises:
        BadTable: a required column is missing, or a column has another type; names them all.
    """
    wrong = list(_differences(frame.schema, wanted, ""))
    if wrong:
        have = ", ".join(field.name for field in frame.schema)
        raise BadTable(f"{what}: {'; '.join(wrong)} (its columns: {have or 'none'})")
    stored = {
        field.name: field
        for field in frame.schema
        if field.name in as_stored and set(as_stored[field.name]) <= set(_names(field.dataType))
    }
    wanted = StructType([stored.get(field.name, field) for field in wanted])
    return frame if frame.schema == wanted else frame.to(wanted)


def _names(kind: DataType) -> Sequence[str]:
    """The fields of a list of structs."""
    one = kind.elementType if isinstance(kind, ArrayType) else kind
    return one.names if isinstance(one, StructType) else ()


def _differences(given: StructType, wanted: StructType, prefix: str) -> Iterator[str]:
    """What is missing or of another type, as sentences."""
    fields = {field.name: field for field in given}
    for field in wanted:
        name = f"{prefix}{field.name}"
        if field.name in fields:
            yield from _mismatches(fields[field.name].dataType, field.dataType, name)
        elif name in _REQUIRED:
            yield f"column {name} ({_said(field.dataType)}) is missing"


def _mismatches(given: DataType, wanted: DataType, name: str) -> Iterator[str]:
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        yield from _mismatches(given.elementType, wanted.elementType, name)
    elif isinstance(given, StructType) and isinstance(wanted, StructType):
        yield from _differences(given, wanted, f"{name}.")
    elif not _is_readable(given, wanted):
        yield (
            f"column {name} is {_said(given)}, it must be {_said(wanted)}; "
            "cast it where the table is made"
        )


def _is_readable(given: DataType, wanted: DataType) -> bool:
    have, want = given.simpleString(), wanted.simpleString()
    # A column of nulls only, as JSON or pandas give it, has no type of its own.
    return have in ("void", want) or have in _WIDER.get(want, ())


def _said(kind: DataType) -> str:
    text = kind.simpleString()
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004 a nested type is a page
