"""Names that several groups of a table have: nobody could tell their plans apart."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_assign.inputs import Groups
from spark_assign.places import PLACE, PLACE_TYPE, said

_SHOWN = 3


def repeated_names(groups: Groups) -> DataFrame:
    """One column `_twice`, the names that come more than once; reads the names only."""
    named = groups.frame.select(_name(groups).alias("_twice")).where("_twice is not null")
    return named.groupBy("_twice").count().where("count > 1").select("_twice")


def without(groups: Groups, names: DataFrame) -> Groups:
    """The groups of other names."""
    frame = groups.frame.join(names, _name(groups).eqNullSafe(f.col("_twice")), "left_anti")
    return Groups(frame=frame, is_text=groups.is_text)


def repeated_rejects(groups: Groups, names: DataFrame) -> DataFrame:
    """Every group of these names in the schema `schemas.REJECT`; each reason names the others."""
    own = groups.frame if PLACE in groups.frame.columns else _placeless(groups.frame)
    rows = own.select(_name(groups).alias("name"), PLACE)
    mine = rows.join(names, f.col("name") == f.col("_twice"), "left_semi")
    placed = said(mine, groups.frame)
    places = f.slice(f.sort_array(f.collect_list("place")), 1, _SHOWN)
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
        .select(f.col("name").alias("_twice"), reason.alias("reason"))
    )
    return placed.join(reasons, f.col("name") == f.col("_twice")).select(
        "name", f.lit("name").alias("column"), f.col("name").alias("value"), "reason", "place"
    )


def _placeless(frame: DataFrame) -> DataFrame:
    return frame.withColumn(PLACE, f.lit(None).cast(PLACE_TYPE))


def _name(groups: Groups) -> Column:
    return f.get_json_object("value", "$.name") if groups.is_text else f.col("name")
