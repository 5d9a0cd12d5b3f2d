"""Checkers of simulated systems: each checks one rule on the events of a trace, one by one.

The evidence of a subject follows the trace alone: the oracle does not ask the simulated code.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A rule that was broken, when, and how."""

    rule: str
    at_ms: int
    sentence: str


class Finished(NamedTuple):
    """The run is over and the system is at rest; added to a trace for checkers of its end."""

    at_ms: int


class Evidence(Protocol):
    """What a trace says up to a point."""

    def add(self, event: Any, /) -> None:
        """Add the next event."""


@dataclass(frozen=True, slots=True)
class Checker:
    """A rule of a simulated system, and its check.

    Attributes:
        name: unique among the rules of its subject.
        check: returns how an event breaks the rule, given the evidence before it; None: it does
            not. The first line of its docstring is the promise.
        on: types of the events that can break it.
    """

    name: str
    check: Callable[[Any, Any], str | None]
    on: tuple[type, ...]

    @property
    def promise(self) -> str:
        """The promise, without its full stop and with a small first letter."""
        text = (self.check.__doc__ or "").partition("\n")[0].removesuffix(".")
        return text[:1].lower() + text[1:]


def check_event(evidence: Any, event: Any, checkers: Iterable[Checker]) -> list[Broken]:
    """Check one event; the evidence is that before the event, and is not changed."""
    kind = type(event)
    broken = []
    for checker in checkers:
        if kind in checker.on:
            sentence = checker.check(evidence, event)
            if sentence is not None:
                broken.append(Broken(rule=checker.name, at_ms=event.at_ms, sentence=sentence))
    return broken


def check_events(
    trace: Iterable[Any], evidence: Evidence, checkers: Iterable[Checker], *, once: bool = False
) -> list[Broken]:
    """Check every event of a trace, and add it to the evidence.

    Args:
        trace: from its first event.
        evidence: without any event.
        checkers: of the subject.
        once: report each broken rule only the first time that it is broken.
    """
    by_kind: dict[type, list[Checker]] = {}
    for checker in checkers:
        for kind in checker.on:
            by_kind.setdefault(kind, []).append(checker)
    broken: list[Broken] = []
    reported: set[str] = set()
    for event in trace:
        wanted = by_kind.get(type(event))
        if wanted is not None:
            for found in check_event(evidence, event, wanted):
                if found.rule not in reported:
                    broken.append(found)
                if once:
                    reported.add(found.rule)
        evidence.add(event)
    return broken
