"""Explore every upgrade of the release table, and list the findings.

Each upgrade, and each release that is restarted alone, is explored in small groups (`SHAPES`).
Without an option the result is written to findings.json, from which docs/findings.md is generated;
with --check it is compared with that file (exit 1: they differ). Upgrades that the
simulator cannot distinguish are explored once: `same_ways` groups them.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from probing import Direction, Release, find_release, upgrade_path
from system_tests.explore import Bounds, Explored, explore, explore_alone, placed_by, runbook
from system_tests.matrix import kinds
from system_tests.sim import BounceOptions, Plan, plan_bounce
from system_tests.sim.world import behaviour_of

WORKERS = 2
STORED = Path(__file__).with_name("findings.json")
SHAPES = tuple(
    Bounds(
        members=members,
        partitions=2 * members,
        static=static,
        crashes=crashes,
        max_states=max_states,
        more_states=max_states,
    )
    for members, crashes, max_states in ((2, 0, 20_000), (2, 1, 1_500), (3, 0, 600))
    for static in (False, True)
)
"""The groups: two members completely; two with a crash, and three, up to a number of states."""
Way = tuple[str, str]
Row = dict[str, Any]


def upgrade_plan(old: str, new: str, *, static: bool) -> Plan:
    """Return the path between two releases; one bounce without upgrade.from if there is none."""
    possible = upgrade_path(find_release(old), find_release(new)).possible
    return plan_bounce(BounceOptions(old=old, new=new, static=static, force=not possible))


def all_ways() -> list[Way]:
    """Return every upgrade between two kinds of the release table, and within one kind."""
    names = [kind.name for kind in kinds()]
    within = [(kind.releases[0], kind.name) for kind in kinds() if len(kind.releases) > 1]
    pairs = [(old, new) for old in names for new in names] + within
    return [
        (old, new)
        for old, new in pairs
        if upgrade_path(find_release(old), find_release(new)).direction is Direction.UPGRADE
    ]


def _program(name: str, upgrade_from: str | None) -> Hashable:
    """Return everything that the simulator knows of a release with a setting, except its name."""
    release: Release = find_release(name)
    behaviour = behaviour_of(name, upgrade_from)
    nameless = replace(
        behaviour, release=find_release("native"), upgrade_from=None, may_be_static=True
    )
    models = (release.leader_model, release.member_model, release.order >= (2, 5, 0))
    return (release.readable_versions, release.pinned_version(upgrade_from), models, nameless)


def signature(plan: Plan) -> Hashable:
    """Return a value that is equal for upgrades that the simulator cannot distinguish."""
    programs = [(plan.old, None), *((stage.release, stage.upgrade_from) for stage in plan.stages)]
    versions = (plan.resting_versions, plan.is_uniform, plan.final_version)
    return (tuple(_program(*program) for program in programs), versions)


def same_ways(*, static: bool) -> list[list[Way]]:
    """Return all upgrades, grouped by `signature`, newest last.

    Args:
        static: groups of static members, which exist from 2.3 on.
    """
    found: dict[Hashable, list[Way]] = {}
    for old, new in all_ways():
        if not static or all(behaviour_of(name, None).may_be_static for name in (old, new)):
            plan = upgrade_plan(old, new, static=static)
            found.setdefault(signature(plan), []).append((old, new))
    return list(found.values())


def alone_in(task: tuple[str, Bounds]) -> Explored:
    """Return the search of a release that is restarted member by member."""
    return explore_alone(*task)


def explore_way(task: tuple[Way, Bounds]) -> Explored:
    """Return the search of an upgrade."""
    (old, new), bounds = task
    return explore(upgrade_plan(old, new, static=bounds.static), bounds)


def rows_of(way: Way, bounds: Bounds, found: Explored, alone: dict[str, Explored]) -> list[Row]:
    """Return the findings of one upgrade in one group, each with its presence."""
    old, new = way
    plan = upgrade_plan(old, new, static=bounds.static)
    return [
        {
            "rule": finding.found.finding.broken.rule,
            "issue": finding.found.issue,
            "presence": finding.presence.value,
            "certain": finding.is_certain,
            "runbook": "; ".join(runbook(plan, finding.found.moves)),
        }
        for finding in placed_by(found.found, in_old=alone[old], in_new=alone[new])
    ]


def measure(
    shapes: Iterable[Bounds], ways: Sequence[list[list[Way]]], *, workers: int = WORKERS
) -> list[Row]:
    """Explore the last upgrade of each list in every group.

    Args:
        shapes: the groups.
        ways: `same_ways` of dynamic members, and of static members.
        workers: number of processes; 1: run in this process.
    """
    measured: list[Row] = []
    with ExitStack() as stack:
        run: Callable[..., Iterator[Explored]] = map
        if workers > 1:
            context = multiprocessing.get_context("fork")
            run = stack.enter_context(context.Pool(workers, maxtasksperchild=8)).imap
        for bounds in shapes:
            shown = [same[-1] for same in ways[bounds.static]]
            names = list(dict.fromkeys(name for way in shown for name in way))
            ran = run(alone_in, [(name, bounds) for name in names])
            alone = dict(zip(names, ran, strict=True))
            tasks = [(way, bounds) for way in shown]
            for way, found in zip(shown, run(explore_way, tasks), strict=True):
                group = {"members": bounds.members, "static": bounds.static}
                measured.append(
                    {
                        "from": way[0],
                        "to": way[1],
                        **group,
                        "crashes": bounds.crashes,
                        "states": found.states,
                        "complete": found.complete,
                        "findings": rows_of(way, bounds, found, alone),
                    }
                )
                click.echo(f"{measured[-1]}", err=True)
    return measured


def to_text(document: dict[str, list[Any]]) -> str:
    """Return a document as JSON, one line per group of upgrades and per search."""
    same = ",\n".join(f"[\n{_lines(groups)}\n]" for groups in document["same"])
    searches = _lines(document["searches"])
    return f'{{"same": [{same}],\n"searches": [\n{searches}\n]}}\n'


def _lines(rows: Iterable[Any]) -> str:
    return ",\n".join(map(json.dumps, rows))


@click.command(help=__doc__)
@click.option("--check", "checks", is_flag=True, help="compare with what is stored; write nothing")
def main(*, checks: bool) -> None:
    """Measure and write, or measure and compare."""
    ways = [same_ways(static=static) for static in (False, True)]
    fresh = {
        "same": [[list(map(" -> ".join, same)) for same in lists] for lists in ways],
        "searches": measure(SHAPES, ways),
    }
    if checks:
        sys.exit(json.loads(STORED.read_text(encoding="utf-8")) != fresh)
    STORED.write_text(to_text(fresh), encoding="utf-8")


if __name__ == "__main__":
    main()
