"""The steps of an upgrade or a rollback: bounces, settings, stops of all members.

`probing.upgrade_path` covers versions and rebalance protocols. An application depends on more:
foreign-key joins (KAFKA-13769), KTable repartition topics (KIP-904), state on disk, host maps for
interactive queries, static members. A plan combines both. Each step has a reason, and says how to
roll back after it.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from probing import (
    Direction,
    Release,
    find_release,
    upgrade_path,
)
from system_tests.matrix import route
from system_tests.plan.changes import CHANGES, NOT_CHECKED, PathChange, changes_between
from system_tests.plan.changes.formats import (
    deletion,
    formats_to_hold,
    obstacles_of,
    state_formats_between,
)
from system_tests.plan.exactly_once import (
    Switch,
    crosses,
    guarantee_of,
    renamed_guarantee,
    switch_between,
    with_switch,
)
from system_tests.plan.notes import bug_sentences, notes_of, window_sentences
from system_tests.plan.rollback import Rollback, drains, rollback_to
from system_tests.plan.uses import Use, check_uses

_CONSUMED: Final = (
    "all records have been consumed that members wrote to internal topics without this setting"
)


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
        deletes_state: each member starts with an empty state directory.
        until: what has to be true before the next step, as a clause; often empty.
        demands: what else the step takes, as sentences: state to delete, records to consume.
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
    deletes_state: bool = False
    until: str = ""
    demands: tuple[str, ...] = ()


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
        no_return: number of the step, from 1, that deletes state, or after which a rollback
            rebuilds state or stops all members; None if there is no such step.
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

    Raises:
        OptionError: one of the releases does not have a feature.
    """
    check_uses((old, new), uses)
    obstacles, alternatives = obstacles_of(old, new, uses)
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
    closed = [number for number, step in enumerate(steps, 1) if _is_final(step)]
    found = [find_release(stop) for stop in stops]
    switch = switch_between(found) if rolls and Use.EOS in uses else None
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
        changes=changes_between(
            found, uses, CHANGES, switched_on=switch.release if switch is not None else ""
        ),
        not_checked=NOT_CHECKED,
    )


def _is_final(step: PlanStep) -> bool:
    """Whether a step loses state or records, or a rollback after it costs more than bounces."""
    return bool(step.demands) or not step.back.free


def _rolling_steps(stops: list[Release], uses: frozenset[Use]) -> tuple[PlanStep, ...]:
    steps: list[PlanStep] = []
    switch = switch_between(stops) if Use.EOS in uses else None
    switched = None
    for leg, (old, new) in enumerate(pairwise(stops)):
        is_here = switch is not None and old.name == switch.release
        switched = switch if is_here else switched
        own = _leg_steps(leg, (old, new), stops[0], uses, switched)
        if switch is not None and is_here:
            _switch_at(switch, steps, own, uses)
        steps += own
    return tuple(steps)


def _switch_at(
    switch: Switch, before: list[PlanStep], after: list[PlanStep], uses: frozenset[Use]
) -> None:
    """Add a switch between two legs, to a bounce of the same release if there is one.

    Such a bounce sets or removes `upgrade.from` only: every member runs the release already, so
    members may differ in processing.guarantee. Kafka's guide has both in its second round.
    """
    first = find_release((before or after)[0].old)
    if after[0].release == switch.release:
        after[0] = _with_switch(after[0], switch, first, uses)
    elif before and before[-1].old == before[-1].release == switch.release:
        before[-1] = _with_switch(before[-1], switch, first, uses)
    else:
        before.append(_switch_step(switch, first, after[0].leg, uses))


def _leg_steps(
    leg: int,
    ends: tuple[Release, Release],
    first: Release,
    uses: frozenset[Use],
    switch: Switch | None,
) -> list[PlanStep]:
    """Return the bounces between two consecutive stops."""
    old, new = ends
    path = upgrade_path(old, new)
    bounces = [(b.release, b.upgrade_from) for b in path.bounces]
    why = [path.reasons[0]]
    held = formats_to_hold(old, new, uses)
    lower, higher = sorted((old, new), key=lambda release: release.order)
    stages = range(len(bounces))
    if held and len(bounces) == 1:
        bounces = [(higher.name, lower.series), (new.name, None)]
        # On the way back the path itself has the bounce that changes the release.
        stages = range(2) if old is lower else range(-1, 1)
    if held:
        why.append(f"the pin also keeps the old format of {' and of '.join(held)}")
    steps: list[PlanStep] = []
    for stage, (release, upgrade_from) in zip(stages, bounces, strict=True):
        before, after = (find_release(steps[-1].release) if steps else old), find_release(release)
        renamed = renamed_guarantee(before, after) if Use.EOS in uses else ()
        waits = held and old is higher and after is old
        deleted = state_formats_between(after, before)
        steps.append(
            PlanStep(
                old=before.name,
                release=release,
                upgrade_from=upgrade_from,
                rolling=True,
                leg=leg,
                stage=stage,
                why=(_second(old, new),) if steps else tuple(why),
                back=rollback_to(
                    first,
                    after,
                    upgrade_from,
                    writes_ktables=Use.KTABLE in uses,
                    switch=switch,
                ),
                settings=renamed,
                deletes_state=bool(deleted),
                until=_CONSUMED if waits else "",
                demands=tuple(deletion(row, after) for row in deleted),
            )
        )
    return steps


def _with_switch(step: PlanStep, switch: Switch, first: Release, uses: frozenset[Use]) -> PlanStep:
    """Return a step that also makes the switch."""
    back = rollback_to(
        first,
        find_release(step.release),
        step.upgrade_from,
        writes_ktables=Use.KTABLE in uses,
        switch=switch,
    )
    return replace(step, settings=(switch.setting,), why=(*step.why, *switch.why), back=back)


def _switch_step(switch: Switch, first: Release, leg: int, uses: frozenset[Use]) -> PlanStep:
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
            first,
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
    deleted = state_formats_between(new, old)
    drained = drains(new, old, None) if Use.KTABLE in uses else ()
    return PlanStep(
        old=old.name,
        release=new.name,
        upgrade_from=None,
        rolling=False,
        leg=0,
        stage=0,
        why=why,
        deletes_state=bool(deleted),
        demands=(*(deletion(row, new) for row in deleted), *drained),
        back=rollback_to(old, new, None, writes_ktables=Use.KTABLE in uses),
        settings=(guarantee_of(new),) if Use.EOS in uses and crosses(old, new) else (),
    )
