"""What noticed each planted fault: tests/planted/results.jsonl, one line per fault."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.planted.faults import ROOT, Fault, read_faults
from tests.planted.runs import NOT, OTHER, Copy, tests_of, worlds_of

STORED: Final = Path(__file__).with_name("results.jsonl")


class Result(NamedTuple):
    """What noticed a fault.

    Attributes:
        fault: its name.
        digest: of the fault when it was planted.
        noticed: environment -> the first failing test; command -> the rules that changed. The
            value is empty if nothing noticed it.
    """

    fault: str
    digest: str
    noticed: dict[str, str | list[str]]


def read_results() -> dict[str, Result]:
    """Return the stored results by name of the fault."""
    if not STORED.exists():
        return {}
    lines = STORED.read_text(encoding="utf-8").splitlines()
    return {result.fault: result for result in (Result(*json.loads(line)) for line in lines)}


def write_results(results: Mapping[str, Result]) -> None:
    """Store the results of the faults that exist, in their order."""
    names = [fault.name for fault in read_faults()]
    lines = [json.dumps(results[name]) + "\n" for name in names if name in results]
    new = STORED.with_suffix(".new")
    new.write_text("".join(lines), encoding="utf-8")
    new.replace(STORED)


def noticers(fault: Fault) -> tuple[str, ...]:
    """Return the environments and commands in which a fault is looked for."""
    if fault.row:
        return worlds_of(fault)
    return (*([OTHER] if fault.tests else []), *fault.commands)


def is_current(fault: Fault, result: Result | None) -> bool:
    """Return whether a result is complete, and of this fault in its present form."""
    return (
        result is not None
        and result.digest == fault.digest
        and set(result.noticed) == set(noticers(fault))
    )


def is_as_expected(fault: Fault, noticed: str | list[str]) -> bool:
    """Return whether tests or a command noticed a fault, or did not if there is a reason.

    A command notices it if its checker does; one that must miss something has to run for that.
    """
    if fault.reason:
        return not noticed
    if isinstance(noticed, str):
        return bool(noticed)
    if fault.misses and any(rule.startswith("raises ") for rule in noticed):
        return False
    return (NOT if fault.misses else "") + fault.checker in noticed


def is_a_test(name: str) -> bool:
    """Return whether the sources have a test of this name, a node id without parameters."""
    path, _, function = name.partition("::")
    file = ROOT / path
    return file.is_file() and f"def {function.rpartition('::')[2]}(" in file.read_text("utf-8")


def notice(copy: Copy, fault: Fault, by: str) -> str | list[str]:
    """Return what notices a fault in an environment or by a command.

    The test that noticed it the last time runs first, the others only if it passes.

    Raises:
        MovedError: the place of the fault has moved, or nothing can be run with it.
    """
    if by in fault.commands:
        return copy.changed_rules(fault, by)
    stored = read_results().get(fault.name)
    last = "" if stored is None else str(stored.noticed.get(by, ""))
    if is_a_test(last) and copy.failing_tests(fault, [last]):
        return last
    failing = copy.failing_tests(fault, tests_of(fault.row, by) if fault.row else fault.tests)
    return failing[0] if failing else ""
