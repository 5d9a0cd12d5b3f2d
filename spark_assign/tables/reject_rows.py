"""Rejects as rows: from the results to the table of rejects, and to the first few sentences."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_assign.tables.errors import BadTable
from spark_assign.tables.inputs import Groups
from spark_assign.tables.output import Stage
from spark_assign.tables.places import with_places
from spark_assign.tables.rejects import REJECT, Reject

REJECTS = "_rejects"
"""The folder of an output that rejects are written to."""

SENTENCES = 3
_PLACE = r"^(.*), (?:line|row) ([0-9]+)$"


def rejects_with_places(results: DataFrame, more: Sequence[Reject], groups: Groups) -> DataFrame:
    """The rejects of a job in the schema `rejects.REJECT`, each with its place.

    Args:
        results: rows with a column `reject`, null where the group is placed.
        more: rejects that the driver found.
        groups: the whole input, as it was read.
    """
    rows = results.where("reject is not null").select("reject.*")
    if more:
        found = rows.sparkSession.createDataFrame([reject.row() for reject in more], REJECT)
        rows = rows.unionByName(found)
    return with_places(rows, groups.frame, is_text=groups.is_text, skipped=groups.skipped)


def write_rejects(parts: Sequence[DataFrame], stage: Stage, *, form: str = "parquet") -> DataFrame:
    """Write rejects beside the rows of an output; return them as they are stored.

    Args:
        parts: tables in the schema `rejects.REJECT`.
        stage: the output.
        form: parquet or json.
    """
    stage.write(reduce(DataFrame.unionByName, parts).drop("position"), REJECTS, form=form)
    return stage.files.spark.read.schema(REJECT).format(form).load(f"{stage.path}/{REJECTS}")


def first_sentences(rejects: DataFrame) -> tuple[str, ...]:
    """The first few rejects as sentences, by place, name, column and value."""
    file, number = (f.regexp_extract("place", _PLACE, part) for part in (1, 2))
    order = (file, number.try_cast("long"), "name", "column", "value")
    rows = rejects.drop("position").orderBy(*order).limit(SENTENCES).collect()
    return tuple(str(Reject(**row.asDict())) for row in rows)


def refused(parts: Sequence[DataFrame]) -> BadTable:
    """The error of a job that fails because groups are rejected; it names the first few."""
    rejects = reduce(DataFrame.unionByName, parts)
    sentences = first_sentences(rejects)
    more = rejects.count() - len(sentences)
    return BadTable(
        f"{'; '.join(sentences)}{f'; and {more} more' if more else ''} (--on-error reject "
        "places the others)"
    )
