"""Remove one rule, and record which bounce detects it.

Every row of the tables of `probing` and every checker of the simulator is removed, one at a time,
and the same bounces run with and without it. Without an option the result is written to
docs/planted.json, from which docs/planted.md is generated; with --check it is compared with that
file (exit 1: a difference): the bounce named for each rule must still detect it, and no bounce may
detect the others. If a bounce is named, only this one runs, unless --anew is given. With --tenth,
only a tenth of the bounces that no row names run, another tenth each day.

Each rule is removed in a separate process, so that no cache has results of the whole table.
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
from tests.nightly import sample
from tests.system_tests.planted.bounces import BOUNCES, EXPLORED, HARMLESS, RUNBOOKS, SEEDS, Runbook

WORKERS = 2
STORED = Path(__file__).resolve().parents[3] / "docs" / "planted.json"
NO_ANSWER, NOT_WRITTEN = "no row holds", "cannot be written"
Outcomes = dict[str, list[str]]
LIVENESS = ("settles", "final versions", "version rebalances")


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its name, its rows, and a function that replaces the rows."""

    name: str
    rows: tuple[Any, ...]
    put: Callable[[tuple[Any, ...]], None]

    def without(self, at: int) -> None:
        """Remove one row."""
        self.put(self.rows[:at] + self.rows[at + 1 :])


def tables() -> list[Table]:
    """Return every decision table that a bounce uses."""
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
    """Return the name of a row; names of leader rows include the models, if they are not unique."""
    models = getattr(row, "models", None)
    if models is None:
        return str(row.name)
    left_out = set(LeaderModel) - models
    text = "all" if not left_out else ", ".join(sorted(models))
    if len(left_out) == 1 and len(models) > 1:
        text = f"all but {left_out.pop()}"
    return f"{row.name} ({text})"


def key_of(table: Table, row: Any) -> str:
    """Return the name of a row among all rows of all tables."""
    return f"{table.name}: {label(row)}"


def listen(fired: set[str]) -> None:
    """Record each row that decides: the one whose condition is checked and holds."""

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
    """Return the names of the rules that a bounce breaks, or of the error that ends it."""
    try:
        if isinstance(bounce, Runbook):
            return sorted(bounce.broken())
        return sorted({violation.rule for violation in run_bounce(bounce).broken})
    except StopIteration:
        return [NO_ANSWER]
    except EncodeError:
        return [NOT_WRITTEN]


def command(options: BounceOptions) -> str:
    """Return the command that replays a bounce."""
    words = ["simulate", f"--seed {options.seed}", f"--from {options.old}", f"--to {options.new}"]
    words += [f"--threads {options.threads}"] if options.threads > 1 else []
    words += ["--static"] if options.static else []
    words += [f"--faults {','.join(sorted(options.faults))}"] if options.faults else []
    words += ["--force"] if options.force else []
    return " ".join(words)


def bounces() -> dict[str, BounceOptions | Runbook]:
    """Return every bounce, with each seed, by its command or runbook."""
    every = [BounceOptions(seed=seed, **options) for options in BOUNCES for seed in SEEDS]
    return {command(options): options for options in every} | {
        str(runbook): runbook for runbook in RUNBOOKS
    }


def run_whole(names: Sequence[str]) -> dict[str, tuple[list[str], set[str]]]:
    """Return command -> rules that the bounce breaks, and rows that decided in it."""
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
    """Return command -> rules that the bounce breaks without one row of one table."""
    number, at, names = task
    tables()[number].without(at)
    every = bounces()
    return {name: broken_rules(every[name]) for name in names}


def difference(whole: Outcomes, planted: Outcomes) -> dict[str, Any]:
    """Return the bounce with the clearest difference; new broken rules count most."""
    tells = [
        {"bounce": name, "red": new, "lost": old}
        for name, after in planted.items()
        if (new := sorted(set(after) - set(whole[name])))
        + (old := sorted(set(whole[name]) - set(after)))
    ]
    # A bounce that is good with the whole table is best; then one that breaks few rules.
    tells.sort(key=lambda t: (not t["red"], len(whole[t["bounce"]]), len(planted[t["bounce"]])))
    return tells[0] if tells else {}


def rows_taken_out(
    named: dict[str, str], tried: Sequence[str]
) -> tuple[list[dict[str, Any]], list[tuple[str, Outcomes]]]:
    """Return what detects each row, and every outcome.

    A bounce in which a row never decides cannot need it, so only the others run again.

    Args:
        named: row -> the only bounce to run without it, if it is known to detect it.
        tried: the bounces.
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
    """Return for each checker a bounce that only this checker rejects."""
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
    """Return the command of a search, given in short form."""
    old, new, kind, issue = words.split()
    static = " --static" if kind == "static" else ""
    return f"explore --from {old} --to {new} --members 2{static} --issue {issue}"


@click.command(help=__doc__)
@click.option("--check", "checks", is_flag=True, help="compare with what is stored; write nothing")
@click.option("--anew", is_flag=True, help="look for better bounces everywhere")
@click.option("--tenth", is_flag=True, help="with --check: of bounces that nothing names, a tenth")
def main(*, checks: bool, anew: bool, tenth: bool) -> None:
    """Measure, then write or compare the results."""
    stored: dict[str, Any] = {}
    if not anew:
        stored = json.loads(STORED.read_text(encoding="utf-8"))
    named = {
        f"{r['table']}: {r['rule']}": r["bounce"] for r in stored.get("rows", ()) if "bounce" in r
    }
    tried = list(bounces())
    if tenth and checks:
        kept = {row["bounce"] for row in stored["checkers"]} | set(named.values())
        kept |= set(sample(tried, every=10, reason="more bounces that no row names"))
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
