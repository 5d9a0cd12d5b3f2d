"""The way of a group from what it runs to what it is to run: one function, in both directions.

`probing.upgrade_path` covers versions and rebalance protocols. An application depends on more:
foreign-key joins (KAFKA-13769), KTable repartition topics (KIP-904), state on disk, exactly-once,
static members. A way combines them into steps. An upgrade, a rollback and the way back after each
step of either are made by `way_between`, so none of them can contradict another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from probing import Direction, Release, find_release, upgrade_path
from probing import upgrades as data
from system_tests.matrix import routes
from system_tests.plan.changes.formats import (
    changed_formats,
    deletions,
    drain_demand,
    evidence_of,
    obstacles_of,
    reset_demand,
)
from system_tests.plan.exactly_once import (
    guarantee_of,
    has_both,
    has_version,
    renamed_guarantee,
    switch_reasons,
    versions_between,
)
from system_tests.plan.model import PlanStep, Running, Way
from system_tests.plan.uses import Use, version_of


def assumed_running(old: Release, new: Release, uses: frozenset[Use]) -> tuple[Running, Running]:
    """Return what a group is assumed to run before and after the path between two releases."""
    versions = versions_between(old, new, version_of(uses)) if Use.EOS in uses else None
    before, after = versions or (None, None)
    return Running(release=old, version=before), Running(release=new, version=after)


def undo(step: PlanStep, before: Running, uses: frozenset[Use]) -> Way:
    """Return the way back from what a group runs after a step to what it ran before the step.

    It is the beginning of the way in the other direction, up to the settings of `before`.
    """
    if before.release.name == step.release:
        own = _settings_step(step.after, before, uses)
        return Way(stops=(before.release,), steps=(own,))
    way = way_between(step.after, replace(before, upgrade_from=None), uses)
    wanted = (before.release.name, before.upgrade_from, before.version)
    found = [(again.release, again.upgrade_from, again.version) for again in way.steps]
    if wanted in found:
        return replace(way, steps=way.steps[: found.index(wanted) + 1])
    last = way.steps[-1].after if way.steps else step.after
    return replace(way, steps=(*way.steps, _settings_step(last, before, uses)))


def way_between(now: Running, goal: Running, uses: frozenset[Use]) -> Way:
    """Return the steps from what a group runs to what it is to run; `goal` has no pin."""
    old, new = now.release, goal.release
    path = upgrade_path(old, new)
    if path.direction is Direction.NONE:
        steps = () if now == goal else (_settings_step(now, goal, uses),)
        return Way(stops=(old, new), steps=tuple(steps))
    if path.direction is Direction.UPGRADE and _is_eager(now):
        return _unpinned_first(now, goal, uses)
    found = _possible_stops(old, new, switches=now.version != goal.version)
    ways = [
        Way(stops=stops, steps=_rolling_steps(now, goal, stops, uses))
        for stops in found
        if not obstacles_of(stops, uses)
    ]
    if ways:
        return _with_reason(min(ways, key=_price), ways)
    obstacles = obstacles_of(found[0], uses) if found else ()
    return replace(offline_way(now, goal, obstacles or path.reasons[:1], uses), obstacles=obstacles)


def _price(way: Way) -> tuple[int, int]:
    """Return what decides between ways: their bounces, then how often members delete state."""
    return len(way.steps), way.deletions


def _with_reason(best: Way, ways: Sequence[Way]) -> Way:
    """Return the best of some ways, with the reason in it if it is over an older release."""
    same = [way for way in ways if len(way.steps) == len(best.steps)]
    newest = max(same, key=lambda way: way.stops[1].order)
    if newest.deletions <= best.deletions:
        return best
    why = (
        f"over {newest.stops[1].name}, which is newer than {best.stops[1].name}, members would"
        f" delete their state {newest.deletions} times, not {best.deletions}"
    )
    first, *rest = best.steps
    return replace(best, steps=(replace(first, why=(*first.why, why)), *rest))


@cache
def _possible_stops(
    old: Release, new: Release, *, switches: bool
) -> tuple[tuple[Release, ...], ...]:
    """Return the stops of ways by rolling bounces, those first that are best for the protocol.

    If the version of exactly-once switches, members do so at a stop that has both, if there is one.
    """
    direct = ((old, new),) if upgrade_path(old, new).possible else ()
    if not switches or any(map(has_both, (old, new))):
        return direct or tuple((old, stop, new) for stop in routes(old, new))
    over = filter(has_both, routes(old, new))
    return tuple((old, stop, new) for stop in over) or _possible_stops(old, new, switches=False)


def _is_eager(now: Running) -> bool:
    """Whether `upgrade.from` keeps members at the eager protocol, which later releases lack."""
    pin = now.upgrade_from
    own = now.release.rebalance_protocol
    return pin is not None and now.release.upgrade_from[pin].rebalance_protocol is not own


def _unpinned_first(now: Running, goal: Running, uses: frozenset[Use]) -> Way:
    """Return a way that removes `upgrade.from` before the release changes, as on the way up."""
    can_switch = goal.version is not None and has_version(now.release, goal.version)
    between = replace(now, upgrade_from=None, version=goal.version if can_switch else now.version)
    rest = way_between(between, goal, uses)
    own = (_settings_step(now, between, uses),) if rest.rolling else ()
    return replace(rest, steps=(*own, *rest.steps))


def _rolling_steps(
    now: Running,
    goal: Running,
    stops: tuple[Release, ...],
    uses: frozenset[Use],
) -> tuple[PlanStep, ...]:
    """Return the bounces over all stops, with the switch of exactly-once on the first that can."""
    switches = now.version != goal.version
    at = next((stop for stop in stops if has_both(stop)), None) if switches else None
    steps: list[PlanStep] = []
    version = now.version
    for leg, ends in enumerate(pairwise(stops)):
        own = list(_leg_steps(leg, ends, uses))
        if not steps and _is_done(own[0], now):
            own = own[1:]
        if at is not None and ends[0].name == at.name:
            _switch(steps, own, at, (now, goal), leg)
            version = goal.version
            at = None
        steps += [replace(step, version=version) if step.version is None else step for step in own]
    if at is not None:
        _switch(steps, [], at, (now, goal), len(stops) - 2)
    return tuple(map(_with_guarantee_name, steps))


def _is_done(step: PlanStep, now: Running) -> bool:
    """Whether members run already what a bounce would start them with."""
    return (step.release, step.upgrade_from) == (now.release.name, now.upgrade_from)


def _with_guarantee_name(step: PlanStep) -> PlanStep:
    """Return a step with the setting that another release names differently."""
    old, new = find_release(step.old), find_release(step.release)
    if step.settings or step.version is None or step.version == 1 or new.is_native:
        return step
    is_renamed = guarantee_of(old) != guarantee_of(new) and not old.is_native
    return replace(step, settings=(guarantee_of(new),)) if is_renamed else step


def _switch(
    before: list[PlanStep],
    after: list[PlanStep],
    at: Release,
    ends: tuple[Running, Running],
    leg: int,
) -> None:
    """Add a switch between two legs, to a bounce of the same release if there is one.

    Such a bounce sets or removes `upgrade.from` only: every member runs the release already, so
    members may differ in processing.guarantee. Kafka's guide has both in its second round.
    """
    now, goal = ends
    why = switch_reasons(now.release, at, goal.release)

    def switched(step: PlanStep) -> PlanStep:
        settings = (guarantee_of(at, goal.version or 2),)
        return replace(step, why=(*step.why, *why), settings=settings, version=goal.version)

    if after and after[0].old == after[0].release == at.name:
        after[0] = switched(after[0])
    elif before and before[-1].old == before[-1].release == at.name:
        before[-1] = switched(before[-1])
    else:
        pin = now.upgrade_from if not before and at.name == now.release.name else None
        step = PlanStep(
            old=at.name,
            release=at.name,
            upgrade_from=pin,
            rolling=True,
            leg=leg,
            stage=-1,
        )
        before.append(switched(step))


def _settings_step(now: Running, goal: Running, uses: frozenset[Use]) -> PlanStep:
    """Return the bounce that only takes settings back, on the same release."""
    release, pin = goal.release, goal.upgrade_from
    held = changed_formats(find_release(pin), release, uses) if pin else ()
    return PlanStep(
        old=release.name,
        release=release.name,
        upgrade_from=pin,
        rolling=True,
        leg=0,
        stage=0 if now.upgrade_from else -1,
        settings=_switch_settings(now, goal),
        consumes=bool(held),
        transactional=Use.EOS in uses,
        version=goal.version,
    )


def _switch_settings(now: Running, goal: Running) -> tuple[str, ...]:
    """Return the setting that changes the version of exactly-once; often none."""
    if goal.version in (None, now.version):
        return ()
    return (guarantee_of(goal.release, goal.version),)


def _leg_steps(leg: int, ends: tuple[Release, Release], uses: frozenset[Use]) -> Iterator[PlanStep]:
    """Yield the bounces between two consecutive stops."""
    old, new = ends
    path = upgrade_path(old, new)
    lower, higher = sorted(ends, key=lambda release: release.order)
    bounces = [(bounce.release, bounce.upgrade_from) for bounce in path.bounces]
    held = [(row, data.pin_that_keeps(row, old, new)) for row in changed_formats(old, new, uses)]
    kept = [f"upgrade.from={pin} keeps {row.name} as before {row.evidence}" for row, pin in held]
    stages, why = range(len(bounces)), [path.reasons[0], *kept]
    if held and len(bounces) == 1:
        pin = held[0][1]
        bounces = [(higher.name, pin), (new.name, None)]
        # On the way back the path itself has the bounce that changes the release.
        stages = range(2) if old is lower else range(-1, 1)
        why = [*kept, "for the protocol alone, one bounce without a setting would do"]
        if pin != lower.series:
            crash = {row.value: row.why for row in higher.upgrade_from_rows}.get(lower.series)
            why.insert(1, f"upgrade.from={lower.series} is {crash or 'unknown'} in {higher.name}")
    before = old
    for stage, (release, upgrade_from) in zip(stages, bounces, strict=True):
        after = find_release(release)
        deleted = data.one_way_formats_between(after, before)
        expires = Use.STATIC in uses and data.former_answer_is_unreadable(before, after)
        yield PlanStep(
            old=before.name,
            release=release,
            upgrade_from=upgrade_from,
            rolling=True,
            leg=leg,
            stage=stage,
            why=(
                *(tuple(why) if stage == stages[0] else (_second(old, new),)),
                *((data.FORMER_ANSWER,) if expires else ()),
                *(evidence_of(row) for row in deleted),
            ),
            settings=renamed_guarantee(before, after) if Use.EOS in uses else (),
            deletes_state=bool(deleted),
            expires=expires,
            consumes=bool(held) and old is higher and after is old,
            transactional=Use.EOS in uses,
            demands=deletions(deleted, after),
        )
        before = after


def _second(old: Release, new: Release) -> str:
    if old.order < new.order:
        return f"every member runs {new.name} now: remove upgrade.from"
    return f"every member now writes what {new.name} reads: change the release"


def offline_way(now: Running, goal: Running, why: tuple[str, ...], uses: frozenset[Use]) -> Way:
    """Return the one step that stops all members, and may reset the application.

    Args:
        now: what the group runs.
        goal: what it is to run; without a pin, which no group needs whose members start together.
        why: why they do not run together, as sentences.
        uses: features of the application.
    """
    old, new = now.release, goal.release
    deleted = data.one_way_formats_between(new, old)
    reset = reset_demand(old, new, uses)
    drain = drain_demand(old, new, uses)
    step = PlanStep(
        old=old.name,
        release=new.name,
        upgrade_from=None,
        rolling=False,
        leg=0,
        stage=0,
        why=(*why, *(evidence_of(row) for row in deleted)),
        settings=_switch_settings(now, goal),
        deletes_state=bool(deleted) or bool(reset),
        resets=bool(reset),
        drains=bool(drain),
        transactional=Use.EOS in uses,
        demands=(*drain, *(reset or deletions(deleted, new))),
        version=goal.version,
    )
    return Way(stops=(old, new), steps=(step,))
