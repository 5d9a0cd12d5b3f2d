"""The groups that are most worth touching: ranked by what is gained for what is touched."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pyspark import Accumulator, AccumulatorParam, SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_assign.tables import Answer

LISTED = 5
"""Groups that a summary lists if the user asks for no other number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWorth:
    """One group of the ranking; its measures are those of `Measures`."""

    name: str
    worth: float
    gained: int
    touched: int
    handoffs: int
    takeovers: int
    stateless_moves: int
    restores: int
    restored_records: int
    balance_before: float
    balance_settled: float


_MEASURED = tuple(field.name for field in fields(GroupWorth) if field.name != "name")
Ranked = tuple[GroupWorth, ...]


class _First(AccumulatorParam[Ranked]):
    """The first `LISTED` groups of the ranking, from all workers."""

    def zero(self, value: Ranked) -> Ranked:  # noqa: ARG002 signature of Spark
        return ()

    def addInPlace(self, value1: Ranked, value2: Ranked) -> Ranked:  # noqa: N802 name of Spark
        both = (*value1, *value2)
        ranked = sorted(both, key=lambda row: (-row.worth, row.restored_records, row.name))
        return tuple(ranked[:LISTED])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The first groups of the ranking, known to the driver once a job has placed all groups.

    Another job that sorts the written results takes a second.

    Attributes:
        first: those with a worth above 0, at most `LISTED`, ordered as by `most_worth`.
    """

    first: Accumulator[Ranked]

    @classmethod
    def of(cls, context: SparkContext) -> "Ranking":
        """A ranking without groups."""
        return cls(first=context.accumulator((), _First()))

    def note(self, answers: Sequence[Answer]) -> None:
        """Take part in the ranking; called by workers."""
        found = tuple(
            GroupWorth(
                name=answer.name, **{name: getattr(answer.measures, name) for name in _MEASURED}
            )
            for answer in answers
            if answer.reject is None and answer.measures is not None and answer.measures.worth > 0
        )
        if found:
            self.first.add(found)


def most_worth(results: DataFrame, number: int) -> DataFrame:
    """The results of the groups most worth touching, the first ones first.

    Groups whose worth is 0 or less, or not known, are left out. Among groups of equal worth the one
    with fewer records to restore comes first, then the name decides.

    Args:
        results: rows in the schema `results.ANSWER`.
        number: of groups, at most.
    """
    order = (f.desc("measures.worth"), f.asc("measures.restored_records"), f.asc("name"))
    return results.where("measures.worth > 0").orderBy(*order).limit(number)


def listed(ranked: DataFrame) -> tuple[GroupWorth, ...]:
    """The rows of `most_worth` as values."""
    rows = ranked.select("name", *[f"measures.{name}" for name in _MEASURED]).collect()
    return tuple(GroupWorth(**row.asDict()) for row in rows)
