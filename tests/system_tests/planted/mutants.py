"""Give each row of the decision tables another result, and record which check detects it.

Every row of the tables of `probing` gets the result of each other row of its table, one at a time;
its condition is unchanged. Bounces in which the row decides are simulated until one breaks other
rules than with the original tables. For mutants that no bounce detects, small groups are explored;
for the rest, the unit tests of `probing` run. Results are written to docs/mutants.json at once;
docs/mutants.md is generated from it. Only mutants that are not in that file are measured; NAMES are
parts of names of mutants. --check repeats what the simulator and the explorer detected (exit status
1: one is not detected any more).

Each mutant runs in a separate process, so that no cache has results of the original tables.
"""

import contextlib
import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import click
import pytest

from probing import MEMBER_RULES
from probing.leader.native_answers import NATIVE_ANSWER_RULES
from probing.leader.next_version import NEXT_VERSION_RULES
from probing.leader.rules import LEADER_RULES
from probing.member.machine import FOLLOWUP_RULES
from system_tests.explore import Bounds, explore
from system_tests.sim import BounceOptions, bounce, plan_bounce
from tests.system_tests.planted.bounces import Runbook
from tests.system_tests.planted.equal_answers import REASONS
from tests.system_tests.planted.rules import (
    Table,
    bounces,
    broken_rules,
    key_of,
    label,
    listen,
    tables,
)

STORED: Final = Path(__file__).resolve().parents[3] / "docs" / "mutants.json"
PLANTED: Final = STORED.with_name("planted.json")
UNIT_TESTS: Final = "tests/probing"
WORKERS: Final = 2
MOST_BOUNCES: Final = 10
MOST_SEARCHES: Final = 2
MAX_STATES: Final = 600
SETTLE_MS: Final = 200_000
SEEDS: Final = range(2)
SIMULATOR, EXPLORER, UNIT, NOTHING = "simulator", "explorer", "unit tests", "nothing"
CHECKERS: Final = (SIMULATOR, EXPLORER, UNIT)
EXPLORED: Final = (
    "2.0.1 2.3.1",
    "2.3.1 2.4.1",
    "2.8.2 3.9.1",
    "3.1.2 native",
    "native 2.8.2",
    "native next",
    "next native",
    "2.0.1-text 2.3.1-text",
)
"""Searches: two members, one thread, no crash."""
_SAYS: Final = {
    type(next(iter(MEMBER_RULES.values()))[0]): ("action", "writes"),
    type(FOLLOWUP_RULES[0]): ("at_ms",),
    type(LEADER_RULES[0]): (
        "outcome",
        "others_get",
        "future_get",
        "future_numbers",
        "second_number",
        "fixed_version",
    ),
    type(NATIVE_ANSWER_RULES[0]): ("version",),
    type(NEXT_VERSION_RULES[0]): ("says",),
}
"""Kind of row -> the fields that are its answer."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A row with another result: numbers of table and row, and the new result.

    Attributes:
        key: name of the row among all rows; says: name of the row whose result it has.
        changes: fields of the row.
    """

    table: int
    at: int
    key: str
    says: str
    changes: dict[str, Any]

    @property
    def name(self) -> str:
        """Name among all mutants."""
        return f"{self.key}: says {self.says}"

    def plant(self) -> None:
        """Replace the original table by the mutated one."""
        table = tables()[self.table]
        row = replace(table.rows[self.at], **self.changes)
        table.put((*table.rows[: self.at], row, *table.rows[self.at + 1 :]))


def mutants() -> list[Mutant]:
    """Every row with every other result of its table; and native members kept at 11 for ever."""
    found = []
    for number, table in enumerate(tables()):
        answers = _answers(table)
        for at, row in enumerate(table.rows):
            own = _identity(_answer(row))
            found += [
                Mutant(number, at, key_of(table, row), says, changes)
                for identity, (says, changes) in answers.items()
                if identity != own
            ]
    return found


def _answers(table: Table) -> dict[Any, tuple[str, dict[str, Any]]]:
    """Each different result of a table, under the name of the first row that has it."""
    found: dict[Any, tuple[str, dict[str, Any]]] = {}
    for row in table.rows:
        found.setdefault(_identity(_answer(row)), (f"'{label(row)}'", _answer(row)))
    if table.rows == NEXT_VERSION_RULES:
        forever = {"says": lambda _: 11}
        found[_identity(forever)] = ("'11 for ever'", forever)
    return found


def _answer(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _SAYS[type(row)]}


def _identity(answer: dict[str, Any]) -> Any:
    """Return a value that is equal for equal results; functions are equal if their code is."""
    return tuple(
        (value.__code__.co_code, value.__code__.co_consts, value.__code__.co_names)
        if isinstance(value, FunctionType)
        else value
        for value in answer.values()
    )


@cache
def experiments() -> dict[str, BounceOptions | Runbook]:
    """Return the bounces: those of the planted rules, with fewer seeds."""
    return {
        name: bounce
        for name, bounce in bounces().items()
        if isinstance(bounce, Runbook) or bounce.seed in SEEDS
    }


def broken_in(name: str) -> list[str]:
    """Return the rules that an experiment breaks, or the error that ends it."""
    bounce.__dict__["_SETTLE_MS"] = SETTLE_MS  # many mutants never come to rest
    try:
        return broken_rules(experiments()[name])
    except Exception as error:  # noqa: BLE001 a mutant can raise anything
        return [f"raises {type(error).__name__}"]


def found_in(asked: str) -> list[str]:
    """Return the rules that are broken in a search."""
    old, new = asked.split()
    plan = plan_bounce(BounceOptions(old=old, new=new, force=True))
    bounds = Bounds(members=2, partitions=4, crashes=0, max_states=MAX_STATES, more_states=0)
    try:
        return sorted({finding.finding.broken.rule for finding in explore(plan, bounds).found})
    except Exception as error:  # noqa: BLE001 as above
        return [f"raises {type(error).__name__}"]


ASKED: Final[dict[str, Callable[[str], list[str]]]] = {SIMULATOR: broken_in, EXPLORER: found_in}


def run_whole(checker: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the broken rules of each experiment, and row -> experiments in which it decides."""
    fired: set[str] = set()
    listen(fired)
    broken: dict[str, list[str]] = {}
    deciding: dict[str, list[str]] = {}
    for name in experiments() if checker == SIMULATOR else EXPLORED:
        fired.clear()
        broken[name] = ASKED[checker](name)
        for key in fired:
            deciding.setdefault(key, []).append(name)
    return broken, deciding


def run_mutant(
    checker: str, row: dict[str, Any], mutant: Mutant, names: Sequence[str], whole: Any
) -> dict[str, Any]:
    """Return the row of an undetected mutant, with the result of one more checker."""
    mutant.plant()
    row = row | {"seen": NOTHING, "asked": [*row.get("asked", ()), checker]}
    if checker == UNIT:
        return row | {"seen": UNIT} if unit_tests_fail() else row
    row["decides"] = row.get("decides", False) or bool(names)
    for name in names:
        after = ASKED[checker](name)
        if any(result.startswith("raises") for result in after):
            row.setdefault("raises", f"{after[0].removeprefix('raises ')} in {name}")
            continue
        red = sorted(set(after) - set(whole[name]))
        lost = sorted(set(whole[name]) - set(after))
        if red or lost:
            return row | {"seen": checker, "in": name, "red": red, "lost": lost}
    return row


def unit_tests_fail() -> bool:
    """Whether the unit tests fail with the tables of this process."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        arguments = ["-q", "-x", "-p", "no:cacheprovider", UNIT_TESTS]
        return pytest.main(arguments) == pytest.ExitCode.TESTS_FAILED


def measure(
    checker: str, wanted: Sequence[Mutant], rows: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and row of each mutant with the result of one checker, in their order."""
    whole, deciding = {}, {}
    if checker != UNIT:
        with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
            whole, deciding = pool.apply(run_whole, (checker,))
    named = {
        f"{row['table']}: {row['rule']}": row.get("bounce")
        for row in json.loads(PLANTED.read_text(encoding="utf-8"))["rows"]
    }
    most = MOST_BOUNCES if checker == SIMULATOR else MOST_SEARCHES
    tasks = []
    for mutant in wanted:
        # First the bounce that needs the row; then one seed of each pair of releases at a time.
        first = named.get(mutant.key)
        names = sorted(deciding.get(mutant.key, ()), key=lambda n: (n != first, "--seed 1 " in n))
        row = rows.get(mutant.name, {"row": mutant.key, "says": mutant.says})
        tasks.append(partial(run_mutant, checker, row, mutant, names[:most], whole))
    yield from zip((mutant.name for mutant in wanted), _each(tasks), strict=True)


def _each(tasks: Sequence[Callable[[], Any]]) -> Iterator[Any]:
    """Yield results in order; functions cannot be pickled, so forks get tasks by number."""
    _TASKS[:] = tasks
    with multiprocessing.get_context("fork").Pool(WORKERS, maxtasksperchild=1) as pool:
        yield from pool.imap(_run_number, range(len(tasks)), chunksize=1)


_TASKS: list[Callable[[], Any]] = []


def _run_number(number: int) -> Any:
    return _TASKS[number]()


def stored() -> dict[str, dict[str, Any]]:
    """Return the stored results by name of the mutant."""
    if not STORED.exists():
        return {}
    rows = json.loads(STORED.read_text(encoding="utf-8"))["mutants"]
    return {f"{row['row']}: says {row['says']}": row for row in rows}


def write(results: dict[str, dict[str, Any]]) -> None:
    """Write the results of existing mutants, in the order of the tables."""
    every = mutants()
    rows = [dict(results[mutant.name]) for mutant in every if mutant.name in results]
    for row in rows:
        row.pop("reason", None)
        reason = REASONS.get(f"{row['row']}: says {row['says']}")
        if reason is not None:
            row["reason"] = reason
    limits = {"bounces": MOST_BOUNCES, "searches": MOST_SEARCHES, "states": MAX_STATES}
    document = {"limits": limits, "mutants_in_all": len(every), "mutants": rows}
    STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


@click.command(help=__doc__)
@click.option("--simulator", is_flag=True, help="ask the simulator only")
@click.option("--explorer", is_flag=True, help="ask the explorer only")
@click.option("--unit-tests", is_flag=True, help="ask the unit tests only")
@click.option("--check", "checks", is_flag=True, help="repeat what was noticed, and write nothing")
@click.option("--anew", is_flag=True, help="measure again what was measured")
@click.argument("names", nargs=-1)
def main(*, names: tuple[str, ...], checks: bool, anew: bool, **asked: bool) -> None:
    """Run the checkers in order, each for the mutants that are not detected yet."""
    checkers = [name for name in CHECKERS if asked[name.replace(" ", "_")]] or CHECKERS
    every = [
        mutant for mutant in mutants() if not names or any(word in mutant.name for word in names)
    ]
    every.sort(key=lambda mutant: (len(tables()[mutant.table].rows), mutant.table))
    if checks:
        sys.exit(check(every))
    results = stored()
    if anew:
        for mutant in every:
            results.pop(mutant.name, None)
    for checker in checkers:
        wanted = [mutant for mutant in every if _is_open(results.get(mutant.name, {}), checker)]
        for name, row in measure(checker, wanted, results):
            click.echo(f"{row['seen']:<10}  {name}", err=True)
            results[name] = row
            write(results)


def _is_open(row: dict[str, Any], checker: str) -> bool:
    """Whether a mutant is not detected yet, and this checker did not run for it."""
    return row.get("seen", NOTHING) == NOTHING and checker not in row.get("asked", ())


def check(every: Sequence[Mutant]) -> int:
    """Repeat the detections; return 1 if a mutant is not detected any more."""
    silent = not_noticed(every, stored())
    for name in silent:
        click.echo(f"not noticed any more: {name}", err=True)
    return bool(silent)


def not_noticed(every: Sequence[Mutant], rows: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of mutants whose bounce or search breaks the same rules without them."""
    seen = [mutant for mutant in every if "in" in rows.get(mutant.name, {})]
    where = [(rows[mutant.name]["seen"], rows[mutant.name]["in"]) for mutant in seen]
    asked = sorted(set(where))
    tasks: list[Callable[[], Any]] = [partial(_broken, None, *arguments) for arguments in asked]
    tasks += [partial(_broken, mutant, *place) for mutant, place in zip(seen, where, strict=True)]
    broken = list(_each(tasks))
    whole = dict(zip(asked, broken, strict=False))
    after = zip(seen, where, broken[len(asked) :], strict=True)
    return [mutant.name for mutant, place, found in after if found == whole[place]]


def _broken(mutant: Mutant | None, checker: str, name: str) -> list[str]:
    if mutant is not None:
        mutant.plant()
    return ASKED[checker](name)


if __name__ == "__main__":
    main()
