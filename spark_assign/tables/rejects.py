"""Groups and rows that make no sense, in a table of their own: the first of them as sentences."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from spark_assign.tables.checks import Reject
from spark_assign.tables.errors import BadTable
from spark_assign.tables.inputs import Groups
from spark_assign.tables.output import Stage
from spark_assign.tables.places import PLACE, PLACE_TYPE, said
from spark_assign.tables.schemas import REJECT

REJECTS = "_rejects"
"""The folder of an output that rejects are written to."""

_SHOWN = 3
_IN_JSON = StructType([*REJECT.fields, StructField(PLACE, PLACE_TYPE)])


def rejects_of(answers: DataFrame, source: DataFrame) -> DataFrame:
    """The rejects among answers, in the schema `schemas.REJECT`.

    Args:
        answers: with a column `error`, as `results.batch_of` makes it.
        source: the whole input, as it was read.
    """
    errors = answers.where("error is not null").select(f.from_json("error", _IN_JSON).alias("one"))
    return said(errors.select("one.*").drop("place"), source).select(*REJECT.names)


def write_rejects(rejects: DataFrame, stage: Stage, *, form: str = "parquet") -> DataFrame:
    """Add rejects to those of an output, and return all of them as they are stored."""
    stage.write(rejects.select(*REJECT.names), REJECTS, form=form)
    return stored_rejects(stage, form=form)


def stored_rejects(stage: Stage, *, form: str = "parquet") -> DataFrame:
    """The rejects of an output, in the schema `schemas.REJECT`."""
    return stage.files.spark.read.schema(REJECT).format(form).load(f"{stage.path}/{REJECTS}")


def first_of(rejects: DataFrame) -> tuple[str, ...]:
    """The first few as sentences."""
    order = ("name", "column", "value", "place")
    rows = rejects.orderBy(*order).limit(_SHOWN).collect()
    return tuple(str(Reject(**row.asDict())) for row in rows)


def refused(rejects: DataFrame) -> BadTable:
    """The error that ends a job which is to fail at the first of them."""
    sentences = first_of(rejects)
    more = rejects.count() - len(sentences)
    return BadTable(
        f"{'; '.join(sentences)}{f'; and {more} more' if more else ''} (--on-error reject "
        "places the others)"
    )


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
