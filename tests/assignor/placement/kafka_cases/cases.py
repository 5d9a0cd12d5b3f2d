"""The cases, read from the data files here: one for each parameter of Kafka's tests."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.assignor.placement.kafka_cases.fixtures import group_of

DATA = Path(__file__).parent / "data"
RACKS = ("none", "min_traffic", "balance_subtopology")
# How far apart actives of a subtopology may be: Kafka allows 4 where it balances subtopologies.
SKEW = {"none": 1, "min_traffic": 1, "balance_subtopology": 4, "": 1}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One test of Kafka with one set of its parameters.

    Attributes:
        name: Kafka's class, test and parameters.
        state: the group before the rebalance.
        expected: sentences of `checks.py` that hold afterwards.
    """

    name: str
    state: object
    expected: tuple[str, ...]


def case_name(kafka_class, test, *parameters):
    """A case's name: `Class.test[parameters]`."""
    inside = ",".join(str(value) for value in parameters if value != "")
    return f"{kafka_class}.{test}[{inside}]" if inside else f"{kafka_class}.{test}"


def expected_of(sentences, parameter):
    """The sentences for one rack strategy.

    `SKEW` is checked unless racks come first (min_traffic), `ALLSKEW` always; a sentence that
    starts with a strategy and a colon holds for this strategy only.
    """
    found = []
    for sentence in sentences:
        only, colon, rest = sentence.rpartition(": ")
        if colon and parameter not in only.split("|"):
            continue
        if rest == "ALLSKEW" or (rest == "SKEW" and parameter != "min_traffic"):
            found.append(f"level subtopologies {SKEW[parameter]}")
        elif rest != "SKEW":
            found.append(rest)
    return tuple(found)


def stored_cases(kafka_class, *, racks=True, settings=()):
    """All cases of one of Kafka's test classes, with common settings."""
    cases = []
    for line in (DATA / f"{kafka_class}.jsonl").read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        given["config"] = dict(settings) | given.get("config", {})
        cases += [
            Case(
                name=case_name(kafka_class, given["test"], parameter, given.get("part", "")),
                state=group_of(given, strategy=parameter or "none", racks=racks),
                expected=expected_of(given["expect"], parameter),
            )
            for parameter in given.get("params", RACKS)
        ]
    return cases
