"""Take one rule out, and see what goes red.

Every row of the tables of `probing` and every checker of the simulator is taken out, one at a time,
and the same bounces are run with and without it. Without an option the result is written to
docs/planted.json, from which docs/planted.md is printed; with --check it is compared with that file
(exit 1: something differs): the bounce named for each rule must still tell, and where nothing is
named, nothing may. Where a bounce is named it alone is run, unless --anew looks at all of them.
With --tenth, of the bounces that no row names a tenth is run, another one each day.

Each rule is taken out in a process of its own, so that nothing remembers the whole table.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

import probing.leader.decide
import probing.leader.native_answers
import probing.leader.next_version
import probing.member.machine
from encoding import EncodeError
from probing import MEMBER_RULES, LeaderModel, ReleaseError
from system_tests.sim import SAFETY, BounceOptions, OptionError, run_bounce
from tests.rotation import share
from tests.system_tests.planted.bounces import BOUNCES, EXPLORED, HARMLESS, RUNBOOKS, SEEDS, Runbook

WORKERS = 2
STORED = Path(__file__).resolve().parents[3] / "docs" / "planted.json"
NO_ANSWER, NOT_WRITTEN = "no row holds", "cannot be written"
Outcomes = dict[str, list[str]]
LIVENESS = ("settles", "final versions", "version rebalances")


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its name, its rows, and how to put other rows in their place."""

    name: str
    rows: tuple[Any, ...]
    put: Callable[[tuple[Any, ...]], None]

    def without(self, at: int) -> None:
        """Take out one row."""
        self.put(self.rows[:at] + self.rows[at + 1 :])


def tables() -> list[Table]:
    """Every table of decisions that a bounce goes by."""
    models: dict[tuple[Any, ...], list[Any]] = {}
    for model, rows in MEMBER_RULES.items():
        models.setdefault(rows, []).append(model)
    found = [
        Table(f"member, {', '.join(shared)}", rows, _put_member(shared))
        for rows, shared in models.items()
    ]
    for module, attribute, name in (
        (probing.member.machine, "FOLLOWUP_RULES", "member, follow-ups"),
        (probing.leader.decide, "LEADER_RULES", "leader"),
        (
            probing.leader.native_answers,
            "NATIVE_ANSWER_RULES",
            "leader, answers to native members",
        ),
        (
            probing.leader.next_version,
            "NEXT_VERSION_RULES",
            "leader, next version of native members",
        ),
    ):
        found.append(Table(name, getattr(module, attribute), _put(module, attribute)))
    return found


def _put_member(models: Iterable[Any]) -> Callable[[tuple[Any, ...]], None]:
    return lambda rows: MEMBER_RULES.update(dict.fromkeys(models, rows))


def _put(module: Any, attribute: str) -> Callable[[tuple[Any, ...]], None]:
    return lambda rows: setattr(module, attribute, rows)


def label(row: Any) -> str:
    """Name of a row; some names of leaders stand twice, for other models."""
    models = getattr(row, "models", None)
    if models is None:
        return str(row.name)
    left_out = set(LeaderModel) - models
    text = "all" if not left_out else ", ".join(sorted(models))
    if len(left_out) == 1 and len(models) > 1:
        text = f"all but {left_out.pop()}"
    return f"{row.name} ({text})"


def key_of(table: Table, row: Any) -> str:
    """Name of a row among all rows of all tables."""
    return f"{table.name}: {label(row)}"


def listen(fired: set[str]) -> None:
    """Let every row say when it is the one that decides: a row that is asked and holds."""

    def recorded(key: str, holds: Callable[..., bool]) -> Callable[..., bool]:
        def recording(*numbers: Any) -> bool:
            held = holds(*numbers)
            if held:
                fired.add(key)
            return held

        return recording

    for table in tables():
        table.put(tuple(replace(r, holds=recorded(key_of(table, r), r.holds)) for r in table.rows))


def broken_rules(bounce: BounceOptions | Runbook) -> list[str]:
    """Names of the rules that a bounce breaks, or of the error that it ends with."""
    try:
        if isinstance(bounce, Runbook):
            return sorted(bounce.broken())
        return sorted({violation.rule for violation in run_bounce(bounce).broken})
    except StopIteration:
        return [NO_ANSWER]
    except EncodeError:
        return [NOT_WRITTEN]


def command(options: BounceOptions) -> str:
    """The command that shows a bounce."""
    words = ["simulate", f"--seed {options.seed}", f"--from {options.old}", f"--to {options.new}"]
    words += [f"--threads {options.threads}"] if options.threads > 1 else []
    words += ["--static"] if options.static else []
    words += [f"--faults {','.join(sorted(options.faults))}"] if options.faults else []
    words += ["--force"] if options.force else []
    return " ".join(words)


def bounces() -> dict[str, BounceOptions | Runbook]:
    """Every bounce that is tried, with each seed, by its command or runbook."""
    every = [BounceOptions(seed=seed, **options) for options in BOUNCES for seed in SEEDS]
    return {command(options): options for options in every} | {
        str(runbook): runbook for runbook in RUNBOOKS
    }


def run_whole(names: Sequence[str]) -> dict[str, tuple[list[str], set[str]]]:
    """Command of each bounce -> rules that it breaks, and rows that decided something in it."""
    fired: set[str] = set()
    listen(fired)
    found = {}
    every = bounces()
    for name in names:
        fired.clear()
        try:
            found[name] = (broken_rules(every[name]), set(fired))
        except (OptionError, ReleaseError) as error:
            raise SystemExit(f"{name}: {error}") from error
    return found


def run_without(task: tuple[int, int, Sequence[str]]) -> Outcomes:
    """Command -> rules that these bounces break without one row of one table."""
    number, at, names = task
    tables()[number].without(at)
    every = bounces()
    return {name: broken_rules(every[name]) for name in names}


def difference(whole: Outcomes, planted: Outcomes) -> dict[str, Any]:
    """The bounce that tells best: newly broken rules count more than old ones that are lost."""
    tells = [
        {"bounce": name, "red": new, "lost": old}
        for name, after in planted.items()
        if (new := sorted(set(after) - set(whole[name])))
        + (old := sorted(set(whole[name]) - set(after)))
    ]
    # Green with the whole table is best, and then: as few rules broken as can be.
    tells.sort(key=lambda t: (not t["red"], len(whole[t["bounce"]]), len(planted[t["bounce"]])))
    return tells[0] if tells else {}


def rows_taken_out(
    named: dict[str, str], tried: Sequence[str]
) -> tuple[list[dict[str, Any]], list[tuple[str, Outcomes]]]:
    """What tells for each row, and every outcome that was met.

    A row is missed in no bounce in which it decides nothing, so only the others are run again.

    Args:
        named: row -> the only bounce to run without it, where one is known to tell.
        tried: the bounces that are run.
    """
    context = multiprocessing.get_context("fork")
    with context.Pool(WORKERS, maxtasksperchild=1) as pool:
        ran = pool.apply(run_whole, (tried,))
        whole = {name: broken for name, (broken, _) in ran.items()}
        tasks, found, met = [], [], [("", whole)]
        for number, table in enumerate(tables()):
            for at, row in enumerate(table.rows):
                key = key_of(table, row)
                decides = [name for name, (_, fired) in ran.items() if key in fired]
                found.append({"table": table.name, "rule": label(row), "decides": bool(decides)})
                tasks.append((number, at, [named[key]] if key in named else decides))
        for row, planted in zip(found, pool.imap(run_without, tasks), strict=True):
            row.update(difference(whole, planted))
            if "bounce" in row:
                key = f"{row['table']}: {row['rule']}"
                met.append((key, {row["bounce"]: planted[row["bounce"]]}))
            click.echo(f"{row}", err=True)
    return found, met


def checkers_taken_out(met: list[tuple[str, Outcomes]]) -> list[dict[str, Any]]:
    """For each checker a bounce that only it rejects: without it, that bounce passes."""
    found: list[dict[str, Any]] = []
    for name in [*(rule.name for rule in SAFETY), *LIVENESS]:
        faults = [
            (len(broken), key, bounce, sorted(set(broken) - {name}))
            for key, outcome in met
            for bounce, broken in outcome.items()
            if name in broken
        ]
        _, key, bounce, others = min(faults, default=(0, "", "", []))
        alone = explore_command(EXPLORED[name]) if name in EXPLORED else ""
        row = {"without": key, "bounce": bounce, "others": others, "alone": alone}
        found.append({"checker": name, **row})
    return found


def explore_command(words: str) -> str:
    """The command of a search in short form."""
    old, new, kind, issue = words.split()
    static = " --static" if kind == "static" else ""
    return f"explore --from {old} --to {new} --members 2{static} --issue {issue}"


@click.command(help=__doc__)
@click.option("--check", "checks", is_flag=True, help="compare with what is stored; write nothing")
@click.option("--anew", is_flag=True, help="look for better bounces everywhere")
@click.option("--tenth", is_flag=True, help="with --check: of bounces that nothing names, a tenth")
def main(*, checks: bool, anew: bool, tenth: bool) -> None:
    """Measure and write, or measure and compare."""
    stored: dict[str, Any] = {}
    if not anew:
        stored = json.loads(STORED.read_text(encoding="utf-8"))
    named = {
        f"{r['table']}: {r['rule']}": r["bounce"] for r in stored.get("rows", ()) if "bounce" in r
    }
    tried = list(bounces())
    if tenth and checks:
        kept = {row["bounce"] for row in stored["checkers"]} | set(named.values())
        kept |= set(share(tried))
        tried = [name for name in tried if name in kept]
    rows, met = rows_taken_out(named, tried)
    silent = {f"{row['table']}: {row['rule']}" for row in rows if "bounce" not in row}
    wrong = [f"{name}: nothing tells, and no reason is given" for name in silent - set(HARMLESS)]
    wrong += [f"{name}: a reason is given, and something tells" for name in set(HARMLESS) - silent]
    for row in rows:
        row["reason"] = HARMLESS.get(f"{row['table']}: {row['rule']}", "")
    checkers = checkers_taken_out(met)
    if checks:
        for was, now in zip(stored["rows"], rows, strict=True):
            # In a tenth of the bounces a row may decide nothing.
            now["decides"] = was["decides"] if tenth else now["decides"]
        pairs = zip((*stored["rows"], *stored["checkers"]), (*rows, *checkers), strict=True)
        wrong += [f"{was} is stored, {now} is measured" for was, now in pairs if was != now]
    else:
        fresh = {"bounces": len(met[0][1]), "rows": rows, "checkers": checkers}
        before = json.loads(STORED.read_text(encoding="utf-8"))
        fresh["dimensions"] = before["dimensions"]
        STORED.write_text(json.dumps(fresh, indent=1) + "\n", encoding="utf-8")
    click.echo("\n".join(sorted(wrong)), err=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
