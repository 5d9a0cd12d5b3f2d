"""Write the answers of a batch: plans and rejects in one pass, then each to its place."""

from collections import Counter
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from spark_assign.batch.worth import LISTED, GroupWorth, listed, most_worth
from spark_assign.tables import ANSWER, COUNTS, Groups, Stage, quoted, total

# Plans and rejects are written by one job, each into a folder of their own below this one.
_EVERYTHING = "_all"
_IS_REJECT = "is_reject"
_PLANS, _REJECTED = (f"{_EVERYTHING}/{_IS_REJECT}={value}" for value in ("false", "true"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is written of the plans, and how.

    Attributes:
        form: parquet or json.
        partition_by: columns that the groups keep; each value becomes a directory COLUMN=VALUE.
        only_worth: keep so many plans, of the groups most worth touching; None: all plans.
    """

    form: str = "parquet"
    partition_by: tuple[str, ...] = ()
    only_worth: int | None = None


def answer_schema(groups: Groups) -> StructType:
    """The columns that the groups keep, and those of `results.ANSWER`."""
    return StructType([*[groups.frame.schema[name] for name in groups.keep], *ANSWER])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The answers of a batch on their way to the output.

    Attributes:
        stage: where they are written; the caller commits.
        output: what is written, and how.
        schema: of the rows.
    """

    stage: Stage
    output: Output
    schema: StructType

    def write_answers(self, answers: DataFrame) -> Counter[str]:
        """Write plans and rejects by one job; how many of each, and the totals of `COUNTS`.

        Args:
            answers: rows in the schema.
        """
        seen = Observation("batch")
        is_reject = f.col("reject").isNotNull()
        observed = answers.observe(
            seen,
            f.count_if(~is_reject).alias("placed"),
            f.count_if(is_reject).alias("rejects"),
            f.count_if(f.col("measures.worth") > 0).alias("worth"),
            *[total(name).alias(name) for name in COUNTS],
        )
        # A task writes both files at once; otherwise Spark sorts all results into one after the
        # other.
        answers.sparkSession.conf.set("spark.sql.maxConcurrentOutputFileWriters", "2")
        names = map(quoted, self.schema.names)
        rows = observed.select(*names, is_reject.alias(_IS_REJECT))
        folders = [_IS_REJECT, *self.output.partition_by]
        self.stage.write(rows, _EVERYTHING, form=self.output.form, folders=folders)
        return Counter(seen.get)

    def write_plan(self, plan: DataFrame) -> None:
        """Write one more plan.

        Args:
            plan: a row in the schema; missing columns are null.
        """
        folders = self.output.partition_by
        self.stage.write(plan.to(self.schema), _PLANS, form=self.output.form, folders=folders)

    def rejected(self) -> DataFrame:
        """The answers that are rejects; maybe none."""
        return self._read(_REJECTED)

    def publish(self, placed: int) -> None:
        """Move the plans to where they belong, or those of the groups most worth touching.

        Args:
            placed: number of plans; without any, an empty table is written.
        """
        path, number = f"{self.stage.path}/{_PLANS}", self.output.only_worth
        if placed and number is None:
            self.stage.files.move_all(path, self.stage.path)
            return
        chosen = self._read(_PLANS) if number is None else most_worth(self._read(_PLANS), number)
        rows = chosen.coalesce(1)
        self.stage.write(rows, form=self.output.form, folders=self.output.partition_by)

    def ranking(self, *, worth: int) -> tuple[GroupWorth, ...]:
        """The groups most worth touching, as many as `only_worth`, or a few.

        Args:
            worth: number of groups whose worth is above 0; without any, nothing is read.
        """
        number = LISTED if self.output.only_worth is None else self.output.only_worth
        return listed(most_worth(self._read(_PLANS), number)) if worth else ()

    def clear(self) -> None:
        """Delete what is not published."""
        self.stage.files.delete(f"{self.stage.path}/{_EVERYTHING}")

    def _read(self, folder: str) -> DataFrame:
        spark, path = self.stage.files.spark, f"{self.stage.path}/{folder}"
        if not self.stage.files.exists(path):
            return spark.createDataFrame([], self.schema)
        return spark.read.schema(self.schema).format(self.output.form).load(path)
