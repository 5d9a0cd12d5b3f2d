"""The groups that are most worth touching: ranked by what is gained for what is touched."""

from dataclasses import dataclass, fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

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
    measured = [field.name for field in fields(GroupWorth) if field.name != "name"]
    rows = ranked.select("name", *[f"measures.{name}" for name in measured]).collect()
    return tuple(GroupWorth(**row.asDict()) for row in rows)
