"""Decision tables with a row removed, or with the result of another row."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Final

_CONDITION: Final = frozenset({"name", "holds", "models"})
"""Fields that say when a row holds; all others are its result."""


def changed_table(table: Sequence[Any], rule: str, answers_as: str = "") -> tuple[Any, ...]:
    """Return a table without the rows of a name, or with the result of another row.

    Args:
        table: the rows.
        rule: the name of the rows.
        answers_as: the name of the row whose result they get; "" removes them.

    Raises:
        LookupError: there is no such row.
    """
    names = [row.name for row in table]
    for name in (rule, answers_as):
        if name and name not in names:
            raise LookupError(f"there is no row {name!r}")
    if not answers_as:
        return tuple(row for row in table if row.name != rule)
    other = table[names.index(answers_as)]
    result = {
        field.name: getattr(other, field.name)
        for field in fields(other)
        if field.name not in _CONDITION
    }
    return tuple(replace(row, **result) if row.name == rule else row for row in table)
