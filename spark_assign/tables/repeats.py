"""Groups that share a name: found before anything is placed, and all rejected."""

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from assignor.problems import ProblemError, parse_problem
from spark_assign.tables.inputs import Groups
from spark_assign.tables.places import POSITION, with_places
from spark_assign.tables.reject_rows import SENTENCES
from spark_assign.tables.rejects import POSITION_TYPE, REJECT, printable_name

_REPEATED, _OWN = "_repeated", "_own_name"
_PLACED = StructType([REJECT["name"], StructField(POSITION, POSITION_TYPE), REJECT["place"]])


def repeated_names(groups: Groups) -> DataFrame:
    """Names of more than one group, in a column `_repeated`; reads no other column."""
    named = groups.frame.select(_name(groups).alias(_REPEATED))
    if skipped := [(line.name,) for line in groups.skipped if line.name]:
        named = named.union(named.sparkSession.createDataFrame(skipped, f"{_REPEATED} string"))
    named = named.where(f"{_REPEATED} is not null")
    return named.groupBy(_REPEATED).count().where("count > 1").select(_REPEATED)


def without(groups: Groups, names: DataFrame) -> Groups:
    """The groups with other names."""
    named = groups.frame.withColumn(_OWN, _name(groups))
    frame = named.join(names, f.col(_OWN) == f.col(_REPEATED), "left_anti").drop(_OWN)
    return replace(groups, frame=frame)


def repeated_rejects(groups: Groups, names: DataFrame) -> DataFrame:
    """All groups of these names as rejects (`rejects.REJECT`); reasons list the first places."""
    frame = groups.frame
    if POSITION not in frame.columns:
        frame = frame.withColumn(POSITION, f.lit(None).cast(POSITION_TYPE))
    rows = frame.select(
        _name(groups).alias("name"), POSITION, f.lit(None).cast("string").alias("place")
    )
    if skipped := [(line.name, None, line.place) for line in groups.skipped]:
        rows = rows.union(rows.sparkSession.createDataFrame(skipped, _PLACED))
    repeated = rows.join(names, f.col("name") == f.col(_REPEATED), "left_semi")
    placed = with_places(repeated, groups.frame, is_text=groups.is_text, skipped=groups.skipped)
    places = f.slice(f.sort_array(f.collect_list("place")), 1, SENTENCES)
    known = f.when(f.size("places") > 0, f.concat(f.lit(", at "), f.array_join("places", " and ")))
    reason = f.concat(
        f.lit("the name is given "),
        f.when(f.col("n") == 2, "twice").otherwise(f.concat("n", f.lit(" times"))),  # noqa: PLR2004 a pair
        f.coalesce(known, f.lit("")),
        f.lit("; give every group its own"),
    )
    reasons = (
        placed.groupBy("name")
        .agg(f.count("*").alias("n"), places.alias("places"))
        .select(f.col("name").alias(_REPEATED), reason.alias("reason"))
    )
    return (
        placed.join(reasons, f.col("name") == f.col(_REPEATED))
        .withColumns({"column": f.lit("name"), "value": f.col("name")})
        .select(*REJECT.names)
    )


def _name(groups: Groups) -> Column:
    # Not `get_json_object`, for which 5 and "5" are one name.
    return _name_of_line(f.col("value").cast("binary")) if groups.is_text else f.col("name")


@f.udf(returnType=StringType(), useArrow=False)
def _name_of_line(line: bytearray | None) -> str | None:
    """The name of the group of a line; null if the line or the name is invalid."""
    try:
        name = parse_problem(bytes(line or b"")).get("name")
    except ProblemError:
        return None
    return name if isinstance(name, str) and printable_name(name) == name else None
