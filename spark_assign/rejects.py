"""Groups and rows that make no sense, in a table of their own: the first of them as sentences."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from spark_assign.checks import Reject
from spark_assign.errors import BadTable
from spark_assign.output import Stage
from spark_assign.places import PLACE, PLACE_TYPE, said
from spark_assign.schemas import REJECT

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
