"""Decision tables: ordered rows, of which the first that holds decides.

A table is a tuple of `Rule` that stands at the top of a module, after its facts, and is looked up
where it is used, by `first(TABLE, facts)`. Pages are generated from tables, and tests break rows to
see that this is noticed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

Facts = TypeVar("Facts")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)  # without slots: Python 3.11 cannot call `Rule[Facts, Outcome]` with them
class Rule(Generic[Facts, Outcome]):
    """One row of a decision table.

    Attributes:
        name: its name in decisions, logs and pages.
        holds: whether the row decides for these facts, if no row before it does.
        says: the outcome; a function of the facts if it depends on them.
        why: the sentence for people, a format string; see `sentence`.
    """

    name: str
    holds: Callable[[Facts], bool]
    says: Outcome
    why: str = ""

    def sentence(self, facts: Facts, **values: object) -> str:
        """Return `why` with these values, and with attributes of the facts for all other names.

        Raises:
            AttributeError: the facts lack a name of the format string.
        """
        return self.why.format_map(_Values(facts, values))


Rules: TypeAlias = tuple[Rule[Facts, Outcome], ...]
"""A decision table."""


def always(_: object) -> bool:
    """Return True: the condition of a last row."""
    return True


def first(rules: Iterable[Rule[Facts, Outcome]], facts: Facts) -> Rule[Facts, Outcome]:
    """Return the row that decides: the first that holds.

    Raises:
        LookupError: no row holds.
    """
    rule = first_or_none(rules, facts)
    if rule is None:
        raise LookupError(f"no row of the table holds for {facts}; add a last row that always does")
    return rule


def first_or_none(
    rules: Iterable[Rule[Facts, Outcome]], facts: Facts
) -> Rule[Facts, Outcome] | None:
    """Return the first row that holds; None if the table does not apply."""
    return next((rule for rule in rules if rule.holds(facts)), None)


class _Values(dict[str, object]):
    """Values of a format string; attributes of the facts are read only if the string has them."""

    def __init__(self, facts: object, values: Mapping[str, object]) -> None:
        super().__init__(values)
        self._facts = facts

    def __missing__(self, name: str) -> object:
        return getattr(self._facts, name)
