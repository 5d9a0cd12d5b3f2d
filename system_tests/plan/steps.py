"""The steps of an upgrade or a rollback: bounces, settings, stops of all members.

`probing.upgrade_path` covers versions and rebalance protocols. An application depends on more:
foreign-key joins (KAFKA-13769), KTable repartition topics (KIP-904), state on disk, host maps for
interactive queries, static members. A plan combines both. Each step has a reason, and says how to
roll back after it.
"""

from dataclasses import dataclass
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
from system_tests.plan.changes import CHANGES, NOT_CHECKED, PathChange, changes_between
from system_tests.plan.exactly_once import (
    Switch,
    crosses,
    guarantee_of,
    renamed_guarantee,
    switch_between,
    with_switch,
)
from system_tests.plan.notes import bug_sentences, notes_of, window_sentences
from system_tests.plan.rollback import Rollback, rollback_to
from system_tests.plan.uses import Use

_FORMAT_BY_USE: Final = dict(zip((Use.FK_JOIN, Use.KTABLE), data.FORMATS, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step for an operator.

    Attributes:
        old: release that the members run before the step.
        release, upgrade_from: release and setting that the members are restarted with.
        rolling: members are restarted one at a time; False: all are stopped first.
        settings: other settings that change, as `name=value`.
        leg: index, from 0, of the pair of consecutive stops that this step belongs to.
        stage: index of the bounce within its leg, from 0; -1 if only `settings` change.
        why: reasons, as sentences.
        back: how to return to the first release after this step.
    """

    old: str
    release: str
    upgrade_from: str | None
    rolling: bool
    leg: int
    stage: int
    why: tuple[str, ...]
    back: Rollback
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """How to get from one release to another.

    Attributes:
        old, new: names of the releases.
        uses: features of the application, sorted.
        direction: upgrade, rollback or none.
        rolling: rolling bounces are enough; False: all members have to be stopped.
        stops: releases in order, the first and the last included.
        steps: in order; empty if there is nothing to do.
        no_return: number of the step, from 1, after which a rollback rebuilds state or stops all
            members; None if there is no such step.
        obstacles: why rolling bounces are not possible.
        alternatives: other target releases that rolling bounces can reach.
        warnings: settings to leave alone, traps, formats.
        windows: when a JVM leader may fail a group with native members in it.
        bugs: known issues of the releases, with ids.
        changes: what else changes between the releases, each with its source.
        not_checked: what the plan says nothing about.
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
    changes: tuple[PathChange, ...] = ()
    not_checked: tuple[str, ...] = ()

    @property
    def bounces_by_leg(self) -> tuple[int, ...]:
        """Bounces that the protocol needs between two stops; formats may need one more."""
        pairs = pairwise(map(find_release, self.stops))
        return tuple(len(upgrade_path(old, new).stages()) for old, new in pairs)


def make_plan(old: Release, new: Release, uses: frozenset[Use] = frozenset()) -> UpgradePlan:
    """Return the plan that brings a group from `old` to `new`.

    Args:
        old: release that every member runs.
        new: target release.
        uses: features that the application uses.
    """
    obstacles, alternatives = _obstacles(old, new, uses)
    path = upgrade_path(old, new)
    through = () if path.possible else route(old, new)
    rolls = not obstacles and (path.possible or bool(through))
    stops = (old.name, *through, new.name) if rolls else (old.name, new.name)
    if rolls and Use.EOS in uses:
        stops = with_switch(stops)
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
        changes=changes_between(found, uses, CHANGES),
        not_checked=NOT_CHECKED,
    )


def _rolling_steps(stops: list[Release], uses: frozenset[Use]) -> tuple[PlanStep, ...]:
    steps: list[PlanStep] = []
    switch = switch_between(stops) if Use.EOS in uses else None
    for leg, (old, new) in enumerate(pairwise(stops)):
        if switch is not None and old.name == switch.release:
            steps.append(_switch_step(switch, stops, leg, uses))
        path = upgrade_path(old, new)
        bounces = [(b.release, b.upgrade_from) for b in path.bounces]
        why = [path.reasons[0]]
        held = _formats_to_hold(old, new, uses)
        if held and len(bounces) == 1:
            higher = max(old, new, key=lambda release: release.order)
            lower = min(old, new, key=lambda release: release.order)
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
                    back=rollback_to(
                        stops[0],
                        find_release(release),
                        upgrade_from,
                        writes_ktables=Use.KTABLE in uses,
                        switch=switch if any(step.stage < 0 for step in steps) else None,
                    ),
                    settings=renamed_guarantee(before, find_release(release))
                    if Use.EOS in uses
                    else (),
                )
            )
    return tuple(steps)


def _switch_step(switch: Switch, stops: list[Release], leg: int, uses: frozenset[Use]) -> PlanStep:
    """Return the step that changes processing.guarantee, on the release that has both values."""
    return PlanStep(
        old=switch.release,
        release=switch.release,
        upgrade_from=None,
        rolling=True,
        leg=leg,
        stage=-1,
        why=switch.why,
        back=rollback_to(
            stops[0],
            find_release(switch.release),
            None,
            writes_ktables=Use.KTABLE in uses,
            switch=switch,
        ),
        settings=(switch.setting,),
    )


def _second(old: Release, new: Release) -> str:
    if old.order < new.order:
        return f"every member runs {new.name} now: remove upgrade.from"
    return f"every member now writes a version that {new.name} reads: change the release"


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
        back=rollback_to(old, new, None, writes_ktables=Use.KTABLE in uses),
        settings=(guarantee_of(new),) if Use.EOS in uses and crosses(old, new) else (),
    )


def _formats_to_hold(old: Release, new: Release, uses: frozenset[Use]) -> list[str]:
    """Return the names of the application's formats that change between two releases."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
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
    """Return the formats that prevent rolling bounces, and the later patches that allow them."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
    notes, instead = [], []
    for name in _formats_to_hold(old, new, uses):
        path = upgrade_path(old, new)
        stops = (old.name, *(() if path.possible else route(old, new)), new.name)
        if _holds(name, [find_release(stop) for stop in stops]):
            continue
        row = {row.value: row for row in higher.upgrade_from_rows}.get(lower.series)
        what = (
            f"upgrade.from={lower.series} is {row.why} in {higher.name}"
            if row is not None and row.standing is Standing.CRASHES
            else f"no setting makes {higher.name} keep the old format"
        )
        notes.append(
            f"{name}: the format changes between {lower.name} and {higher.name}, and {what}"
        )
        instead += _later_holders(name, lower, higher)
    return tuple(notes), tuple(dict.fromkeys(instead))


def _holds(name: str, stops: list[Release]) -> bool:
    """Whether `upgrade.from` keeps the old format on the leg on which the format changes."""
    for earlier, other in pairwise(stops):
        lower, higher = sorted((earlier, other), key=lambda release: release.order)
        changed = next(_order(row.changed_in) for row in data.FORMATS if row.name == name)
        if not lower.order < changed <= higher.order:
            continue
        value = higher.upgrade_from.get(lower.series)
        if value is None or name not in value.formats:
            return False
    return True


def _later_holders(name: str, lower: Release, higher: Release) -> list[str]:
    """Return the first later release that accepts `upgrade.from` and keeps the old format."""
    return [
        release.name
        for release in RELEASES
        if release.order > higher.order
        and lower.series in release.upgrade_from
        and name in release.upgrade_from[lower.series].formats
    ][:1]


def _order(name: str) -> tuple[int, ...]:
    return find_release(name).order
