"""docs/planted.md: sums of the planted faults, and a fault for each checker."""

from collections import Counter
from collections.abc import Collection

from tests.planted.checkers import CHECKERS, best_fault
from tests.planted.faults import Fault, read_faults

_TOP = """# Planted faults

To plant faults in a copy of the code, and see which tests or checkers notice them:

<!-- not run: plants faults -->
```sh
python -m tests.planted --list # only print them
python -m tests.planted # plant those that are new or changed
python -m tests.planted 268-7 --world core # those of one promise of a KIP, by its fast tests
python -m tests.planted --check --world other # all but those of promises
```

A *planted fault* is a deliberate change of the code: other text, a row of a decision table that is
removed, or one that gets the result of another row. The files `tests/planted/*.toml` list them.
Each names who must notice it: the tests of a promise ([kips](kips.md)), other tests, or a checker
of a simulated run. `make nightly` plants all of them again, `make test` one for each checker of
dimensions, of changed topologies and of changing levels. `python -m docs.generate` writes this page
from `tests/planted/results.jsonl`.

| faults | in all | noticed by tests | noticed by a checker | noticed by nothing, with a reason |
| --- | --- | --- | --- | --- |"""
_ROWS = """## Rows of the decision tables

Each row of the decision tables of `probing/` is removed. The last row of a table, without which the
code raises an exception, gets the result of another row. Some rows have more than one fault.

| table | faults | noticed by tests | noticed by a checker | noticed by nothing |
| --- | --- | --- | --- | --- |"""
_SILENT = """Rows that nothing notices:

| row | reason |
| --- | --- |"""
_CHECKERS = """## Checkers

Each checker of the simulator reports the fault of its row, in the command of the row; without the
fault the command does not report it. The last column names other checkers that report it. `explore`
ends at the first broken rule. A `runbook` is explained in `tests/planted/oracles.py`; the other
commands are those of `rolling-bounce`."""
_KIND = """### Checkers of {kind}

| checker | fault | in | other checkers |
| --- | --- | --- | --- |"""


def render() -> str:
    """Return the whole page."""
    faults = read_faults()
    files = [
        _sums(f"`{name}`", [fault for fault in faults if fault.file == name])
        for name in dict.fromkeys(fault.file for fault in faults)
    ]
    tables: dict[str, list[Fault]] = {}
    for fault in faults:
        if fault.rule and fault.place.startswith("probing."):
            tables.setdefault(fault.place, []).append(fault)
    rows = [_sums(f"`{place.partition(':')[2]}`", own) for place, own in tables.items()]
    silent = [f"| {fault.name} | {fault.reason} |" for fault in faults if fault.reason]
    parts = [[_TOP, *files], [_ROWS, *rows], [_SILENT, *silent], [_CHECKERS]]
    parts += [[_KIND.format(kind=kind), *map(_checker, names)] for kind, names in CHECKERS.items()]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _sums(name: str, faults: Collection[Fault]) -> str:
    """Return a row: how many faults tests notice, how many a checker, how many nothing."""
    by = Counter(
        "nothing" if fault.reason else "checker" if fault.commands else "tests" for fault in faults
    )
    return f"| {name} | {len(faults)} | {by['tests']} | {by['checker']} | {by['nothing']} |"


def _checker(name: str) -> str:
    fault, command, others = best_fault(name)
    return f"| {name} | {fault.says or fault.name} | `{command}` | {', '.join(others) or 'none'} |"
