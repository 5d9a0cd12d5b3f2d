"""``rolling-bounce plan --all``: one plan for each of many groups, as one table."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote

import click

from assignor import RebalanceError
from assignor.cli import (
    TextTable,
    connected,
    line_error,
    print_uncut,
    problem_lines,
    target_of,
)
from assignor.inspection import problem_of
from assignor.problems import ProblemError, parse_problem, quoted, read_problem
from encoding import shown
from probing import Release, ReleaseError, find_release
from system_tests.cli.group_plan import HEADS, GroupPlan
from system_tests.cli.move_to_streams import planned_move, planned_upgrade
from system_tests.cli.options import EXIT_BAD, EXIT_ENVIRONMENT, refuse, refuse_options
from system_tests.cli.planned_group import (
    CONNECTING,
    planned_saved,
    refuse_report_over_problem,
)
from system_tests.cli.progress import counted
from system_tests.plan import (
    STREAMS,
    SavedGroup,
    Use,
    assumptions,
    check_group,
    decision_of,
    make_plan,
    saved_group,
    spelled_releases,
    step_costs,
)
from system_tests.plan.report import move_decision, write_move_report, write_plan_report
from system_tests.report import ReportError, check_report
from system_tests.sim import OptionError

_SEEDS: Final = 10
"""Simulated bounces of each step of each group by default."""
_SHOWN: Final = 5
_USELESS: Final = (
    "streams_group",
    "topologies",
    "application_id",
    "group_id",
    "members",
    "threads",
    "partitions",
)
_SIMULATED: Final = ("seeds", "sample", "restart_ms", "growth")
_Found = tuple[str, "SavedGroup | str"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is planned for every group.

    Attributes:
        given: the options of the command.
        new: the target, a release or the streams protocol.
        uses: what applications use, unless `uses_of` says it.
        old: release of groups whose metadata does not tell theirs; None: not given.
    """

    given: Mapping[str, Any]
    new: str
    uses: frozenset[Use]
    old: Release | None

    def uses_of(self, group: str) -> frozenset[Use]:
        """Return what the application of a group uses."""
        own: Mapping[str, frozenset[Use]] = dict(self.given["uses_of"])
        return own.get(group, self.uses)


def print_fleet_plan(given: Mapping[str, Any], uses: frozenset[Use]) -> NoReturn:
    """Print one row for each group, write their reports, and end with 1 if one of them is red."""
    refuse_options("--all plans every group as it is; leave out", _USELESS)
    new = given["new"].lower()
    if new == STREAMS:
        refuse_options("--to streams simulates no bounces; leave out", _SIMULATED)
        if given["brokers"] is None:
            refuse("give the release of the brokers, which assign the tasks: --brokers RELEASE")
    elif given["streams_version"] is not None:
        refuse("--streams-version needs --to streams; leave it out")
    is_live = given["bootstrap_server"] is not None or given["command_config"] is not None
    if is_live == (given["saved"] is not None):
        refuse("--all takes the groups of a cluster (--bootstrap-server) or of --problem FILE")
    if not is_live:
        refuse_options("--problem asks no cluster; leave out", CONNECTING)
    new = new if new == STREAMS else find_release(new).name
    directory = given["report"]
    _check_directory(directory)
    skipped: list[str] = []
    groups = list(_live_groups(given, skipped) if is_live else saved_groups(given["saved"]))
    unknown = {group for group, _ in given["uses_of"]} - {name for name, _ in groups}
    if unknown:
        refuse(
            f"--uses-of names {quoted(sorted(unknown)[:_SHOWN])}, which are not among the groups"
        )
    old = find_release(given["old"]) if given["old"] else None
    wanted = _Wanted(given=given, new=new, uses=uses, old=old)
    made: list[GroupPlan] = []
    with counted("groups planned", len(groups)) as add:
        for number, (name, saved) in enumerate(groups, 1):
            made.append(_planned(name, saved, wanted, lambda _: add(0)))
            add(1)
            if directory is not None:
                _write_report(directory, number, made[-1], given)
    _print(made, skipped, given["form"])
    sys.exit(EXIT_BAD if any(plan.is_red for plan in made) else 0)


def _planned(
    name: str,
    saved: SavedGroup | str,
    wanted: _Wanted,
    progress: Callable[[int], object],
) -> GroupPlan:
    """Return the plan of one group; an error of one group must not hide the others."""
    given, new, uses = wanted.given, wanted.new, wanted.uses_of(name)
    try:
        if isinstance(saved, str):
            raise ProblemError(saved)  # noqa: TRY301 the row is that of other errors
        if saved.is_streams_group or new == STREAMS:
            return _planned_move(name, saved, wanted)
        old, group, _ = planned_saved(
            saved, _own_release(saved, wanted.old), given, is_static=Use.STATIC in uses
        )
        uses |= {Use.STATIC} if group.static_members else frozenset()
        made = make_plan(old, find_release(new), uses, threads=group.threads)
        check_group(made, group)
    except (ReleaseError, ProblemError, OptionError) as error:
        why = str(error)
        return GroupPlan(name=name, old="", new=new, verdict="no plan", is_red=True, problem=why)
    costs = None
    if not given["no_costs"]:
        seeds = given["seeds"] or min(group.seeds, _SEEDS)
        costs = step_costs(made, group, seeds=seeds, progress=progress)
    decision = decision_of(made, group, costs or ())
    assumed = _assumed_release(saved, made.old, wanted.old)
    return GroupPlan(
        name=name,
        old=made.old,
        new=made.new,
        verdict=decision.words,
        is_red=decision.is_red,
        problem="; ".join(decision.reasons),
        made=made,
        group=group,
        costs=costs,
        unknowns=tuple(filter(None, (*assumed, group.begun, *assumptions(made), *group.notes))),
    )


def _planned_move(name: str, saved: SavedGroup, wanted: _Wanted) -> GroupPlan:
    """Return the plan of a streams group, or of a group that becomes one; errors as its makers."""
    given, new, uses = wanted.given, wanted.new, wanted.uses_of(name)
    if not saved.is_streams_group:
        move = planned_move(given, saved, _own_release(saved, wanted.old), uses)
        old = move.release
    elif new == STREAMS:
        verdict = "nothing to do, it is a streams group"
        return GroupPlan(name=name, old=new, new=new, verdict=verdict, is_red=False)
    else:
        move = planned_upgrade(given, saved, uses)
        old = find_release(given["old"]).name
    decision = move_decision(move)
    return GroupPlan(
        name=name,
        old=old,
        new=new,
        verdict=decision.words,
        problem="".join(move.obstacles[:1]),
        is_red=decision.is_red,
        move=move,
        unknowns=(*(f"{what}: {action}" for what, action in move.assumed), *saved.group.notes),
    )


def _own_release(saved: SavedGroup, given: Release | None) -> Release | None:
    """Return the given release if it fits what members wrote, else the oldest one that does."""
    common = saved.common_releases
    if given is not None and (not common or given.name in common):
        return given
    return min(map(find_release, common), key=lambda release: release.order, default=None)


def _assumed_release(saved: SavedGroup, release: str, given: Release | None) -> tuple[str, ...]:
    """Return that a release is one of several that fit, as a sentence; often nothing."""
    common = saved.common_releases
    if len(common) <= 1 or (given is not None and given.name in common):
        return ()
    fits = f"members write what {spelled_releases(common)} do; planned from {release}, the oldest"
    return (f"{fits}; --from RELEASE names another",)


def saved_groups(path: Path) -> Iterator[_Found]:
    """Yield the groups of a file of `inspect --all --save`, or of all files of a directory.

    A line, or a file, that is not a saved group comes with its error instead of a group.

    Raises:
        ProblemError: there is no group at all, or `path` cannot be read.
    """
    files = (
        sorted(p for p in path.iterdir() if p.suffix in (".json", ".jsonl"))
        if path.is_dir()
        else [path]
    )
    count = 0
    for file in files:
        try:
            with file.open("rb") as stream:
                for number, line in enumerate(problem_lines(stream), 1):
                    count += 1
                    yield _saved_line(file, number, line)
        except OSError as error:
            if not path.is_dir():
                raise ProblemError(f"{file} cannot be read: {error.strerror or error}") from None
            count += 1
            yield file.name, f"{file} cannot be read: {error.strerror or error}"
        except RebalanceError as error:
            count += 1
            yield file.name, f"{file}: {error}"
    if not count:
        what = "has no group (*.json, *.jsonl)" if path.is_dir() else "has no group"
        raise ProblemError(f"{path} {what}; write it with assignor inspect --all --save")


def _saved_line(file: Path, number: int, line: bytes) -> _Found:
    name = ""
    try:
        data = parse_problem(line, number=number)
        name = str(data.get("name", ""))
        return name or f"{file.name}:{number}", saved_group(data, read_problem(data))
    except RebalanceError as error:
        whose = f"group {shown(name)}" if name else ""
        return name or f"{file.name}:{number}", f"{file}: {line_error(number, error, whose)}"


def _live_groups(given: Mapping[str, Any], skipped: list[str]) -> Iterator[_Found]:
    """Yield the groups of a cluster; `skipped` gets those that are not of Kafka Streams."""
    target = target_of(given["bootstrap_server"], given["command_config"], given["timeout"])
    with connected(target) as admin:
        from assignor.adapters.admin import look_at_all_groups  # noqa: PLC0415 the client is an extra

        for look in look_at_all_groups(admin):
            name = look.described.group_id
            try:
                data = problem_of(look)
                yield name, saved_group(data, read_problem(data))
            except RebalanceError as error:
                if look.is_streams or look.streams_group is not None:
                    yield name, str(error)
                else:
                    skipped.append(f"{name}: {look.summary}")


def _check_directory(directory: Path | None) -> None:
    """Make the directory of the reports, and check that a file can be written there."""
    if directory is None:
        return
    try:
        directory.mkdir(exist_ok=True)
        check_report(directory / "plan.html")
    except (OSError, ReportError) as error:
        refuse(
            f"--all writes one report for each group: --report {directory}: {error}",
            EXIT_ENVIRONMENT,
        )


def _write_report(directory: Path, number: int, plan: GroupPlan, given: Mapping[str, Any]) -> None:
    file = directory / f"{number:03}-{quote(plan.name, safe='')[:120]}.html"
    refuse_report_over_problem({**given, "report": file})
    try:
        if plan.made is not None:
            write_plan_report(file, plan.made, plan.costs, plan.group)
        elif plan.move is not None:
            write_move_report(file, plan.move, group=plan.name)
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)


def _print(made: list[GroupPlan], skipped: list[str], form: str) -> None:
    if form == "json":
        for plan in made:
            click.echo(json.dumps(plan.document))
        return
    table = TextTable(box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head, overflow="fold")
    for plan in made:
        table.add_row(*plan.cells)
    print_uncut(table)
    red = sum(plan.is_red for plan in made)
    back = sum(plan.is_rollback and not plan.is_red for plan in made)
    rollbacks = f", of them {back} rollback{'s' * (back > 1)}" if back else ""
    groups = f"{len(made)} group{'s' * (len(made) != 1)}"
    click.echo(f"\n{groups}: {red} red, {len(made) - red} to go{rollbacks}")
    for title, lines in (
        ("no plan, or no go", _by_note(made, lambda plan: filter(None, (plan.problem,)))),
        ("unknown", _by_note(made, lambda plan: plan.unknowns)),
        ("not planned", skipped),
    ):
        if lines:
            click.echo(f"\n{title}:")
            for line in lines:
                click.echo(f"  - {shown(line, limit=None)}")


def _by_note(
    made: Sequence[GroupPlan], notes_of: Callable[[GroupPlan], Iterable[str]]
) -> list[str]:
    """Return each note once, with the groups that it is about."""
    notes: dict[str, list[str]] = {}
    for plan in made:
        for note in notes_of(plan):
            notes.setdefault(note, []).append(plan.name)
    return [f"{_few(names, len(made))}: {note}" for note, names in notes.items()]


def _few(names: list[str], count: int) -> str:
    """Return the names of some of `count` groups, shortened."""
    if len(names) == count > 1:
        return "all groups"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
