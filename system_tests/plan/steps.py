"""The steps of an upgrade or a rollback: bounces, settings, stops, and what is known about them.

`probing.upgrade_path` knows versions and rebalance protocols. An application has more that a
rolling bounce must keep readable: foreign-key joins (KAFKA-13769), KTable repartition topics
(KIP-904), state on disk, host maps for interactive queries, static members. A plan joins the two,
step by step, each with its reason and with the way back from there.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from probing import (
    RELEASES,
    Direction,
    Release,
    Standing,
    find_release,
    upgrade_path,
)
from probing import releases as data
from system_tests.matrix import route
from system_tests.plan.notes import bug_sentences, notes_of, window_sentences
from system_tests.plan.way_back import WayBack, way_back


class Use(StrEnum):
    """What the application uses, as far as an upgrade cares."""

    FK_JOIN = "fk-join"
    KTABLE = "ktable"
    STATIC = "static"
    IQ = "iq"


_FORMAT_BY_USE: Final = dict(zip((Use.FK_JOIN, Use.KTABLE), data.FORMATS, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One thing for an operator to do.

    Attributes:
        old: what the members run before; release, upgrade_from: what they are started as.
        rolling: one member at a time; otherwise all are stopped first.
        leg: number of the leg, from 0: (old, new) of a path of `probing`.
        stage: number of the bounce within its leg, from 0.
        why: sentences.
        back: how to return to the first release after this step.
    """

    old: str
    release: str
    upgrade_from: str | None
    rolling: bool
    leg: int
    stage: int
    why: tuple[str, ...]
    back: WayBack


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """How to get from one release to another.

    Attributes:
        old, new: names; uses: of the application, sorted.
        direction: upgrade, rollback or none.
        rolling: nobody has to stop all members.
        stops: releases in order, the first and the last included.
        steps: in order; none if there is nothing to do.
        no_return: number of the step, from 1, after which the way back costs data or a stop; None.
        obstacles: why it does not roll; alternatives: releases that do instead.
        warnings: settings to leave alone, traps, formats.
        windows: when a JVM leader may end a group with native members in it.
        bugs: known issues on the way, with ids.
    """

    old: str
    new: str
    uses: tuple[Use, ...]
    direction: Direction
    rolling: bool
    stops: tuple[str, ...]
    steps: tuple[PlanStep, ...]
    no_return: int | None
    obstacles: tuple[str, ...]
    alternatives: tuple[str, ...]
    warnings: tuple[str, ...]
    windows: tuple[str, ...]
    bugs: tuple[str, ...]


def make_plan(old: Release, new: Release, uses: frozenset[Use] = frozenset()) -> UpgradePlan:
    """Return the plan for a group of `old` that is to run `new`.

    Args:
        old: what every member runs.
        new: what every member shall run.
        uses: what the application uses.
    """
    obstacles, alternatives = _obstacles(old, new, uses)
    path = upgrade_path(old, new)
    through = () if path.possible else route(old, new)
    rolls = not obstacles and (path.possible or bool(through))
    stops = (old.name, *through, new.name) if rolls else (old.name, new.name)
    if path.direction is Direction.NONE:
        steps: tuple[PlanStep, ...] = ()
    elif rolls:
        steps = _rolling_steps([find_release(stop) for stop in stops], uses)
    else:
        steps = (_offline_step(old, new, (*obstacles, *path.reasons[: not path.possible]), uses),)
    closed = [number for number, step in enumerate(steps, 1) if not step.back.free]
    found = [find_release(stop) for stop in stops]
    return UpgradePlan(
        old=old.name,
        new=new.name,
        uses=tuple(sorted(uses)),
        direction=path.direction,
        rolling=rolls,
        stops=stops,
        steps=steps,
        no_return=closed[0] if closed else None,
        obstacles=obstacles,
        alternatives=alternatives,
        warnings=notes_of(found, frozenset(uses)),
        windows=window_sentences(old, new),
        bugs=bug_sentences(found, frozenset(uses)),
    )


def _rolling_steps(stops: list[Release], uses: frozenset[Use]) -> tuple[PlanStep, ...]:
    steps: list[PlanStep] = []
    for leg, (old, new) in enumerate(pairwise(stops)):
        path = upgrade_path(old, new)
        bounces = [(b.release, b.upgrade_from) for b in path.bounces]
        why = [path.reasons[0]]
        held = _formats_to_hold(old, new, uses)
        if held and len(bounces) == 1:
            higher = max(old, new, key=lambda one: one.order)
            lower = min(old, new, key=lambda one: one.order)
            bounces = [(higher.name, lower.series), (new.name, None)]
        if held:
            why.append(f"the pin also keeps the old format of {' and of '.join(held)}")
        for stage, (release, upgrade_from) in enumerate(bounces):
            before = find_release(steps[-1].release) if steps else stops[0]
            steps.append(
                PlanStep(
                    old=before.name,
                    release=release,
                    upgrade_from=upgrade_from,
                    rolling=True,
                    leg=leg,
                    stage=stage,
                    why=tuple(why) if stage == 0 else (_second(old, new),),
                    back=way_back(
                        stops[0],
                        find_release(release),
                        upgrade_from,
                        writes_ktables=Use.KTABLE in uses,
                    ),
                )
            )
    return tuple(steps)


def _second(old: Release, new: Release) -> str:
    if old.order < new.order:
        return f"every member runs {new.name} now: take upgrade.from out again"
    return f"every member writes what {new.name} reads now: change the program"


def _offline_step(
    old: Release, new: Release, why: tuple[str, ...], uses: frozenset[Use]
) -> PlanStep:
    return PlanStep(
        old=old.name,
        release=new.name,
        upgrade_from=None,
        rolling=False,
        leg=0,
        stage=0,
        why=why,
        back=way_back(old, new, None, writes_ktables=Use.KTABLE in uses),
    )


def _formats_to_hold(old: Release, new: Release, uses: frozenset[Use]) -> list[str]:
    """Return the formats of the application that change between two releases, by name."""
    lower, higher = sorted((old, new), key=lambda one: one.order)
    if higher.is_native:
        return []
    return [
        row.name
        for use, row in _FORMAT_BY_USE.items()
        if use in uses and lower.order < _order(row.changed_in) <= higher.order
    ]


def _obstacles(
    old: Release, new: Release, uses: frozenset[Use]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return why formats do not roll, and which later patches they would roll to."""
    lower, higher = sorted((old, new), key=lambda one: one.order)
    said, instead = [], []
    for name in _formats_to_hold(old, new, uses):
        path = upgrade_path(old, new)
        stops = (old.name, *(() if path.possible else route(old, new)), new.name)
        if _holds(name, [find_release(stop) for stop in stops]):
            continue
        row = {row.value: row for row in higher.upgrade_from_rows}.get(lower.series)
        what = (
            f"upgrade.from={lower.series} is {row.why} there"
            if row is not None and row.standing is Standing.CRASHES
            else f"{higher.name} cannot be told to keep it"
        )
        said.append(f"{name}: the format changes between the two, and {what}")
        instead += _later_holders(name, lower, higher)
    return tuple(said), tuple(dict.fromkeys(instead))


def _holds(name: str, stops: list[Release]) -> bool:
    """Tell whether the leg that crosses a format's change can be pinned to the old format."""
    for one, other in pairwise(stops):
        lower, higher = sorted((one, other), key=lambda release: release.order)
        changed = next(_order(row.changed_in) for row in data.FORMATS if row.name == name)
        if not lower.order < changed <= higher.order:
            continue
        value = higher.upgrade_from.get(lower.series)
        if value is None or name not in value.formats:
            return False
    return True


def _later_holders(name: str, lower: Release, higher: Release) -> list[str]:
    """Return the first later release that accepts the pin and keeps the format."""
    return [
        release.name
        for release in RELEASES
        if release.order > higher.order
        and lower.series in release.upgrade_from
        and name in release.upgrade_from[lower.series].formats
    ][:1]


def _order(name: str) -> tuple[int, ...]:
    return find_release(name).order
