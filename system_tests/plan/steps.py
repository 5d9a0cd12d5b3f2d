"""Plans: the way between two releases, the way back after each step, and what else counts.

A plan is what an operator does: where rolling bounces run into a trap that only a stop of all
members avoids, it is that stop.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from probing import Direction, Release, find_release, upgrade_path
from system_tests.plan.changes import (
    CHANGES,
    NOT_CHECKED,
    Brokers,
    PathChange,
    Work,
    brokers_of,
    changes_between,
)
from system_tests.plan.exactly_once import has_both, is_guarantee
from system_tests.plan.model import PlanStep, Running, Way
from system_tests.plan.notes import (
    NO_GO,
    Note,
    Trap,
    bug_sentences,
    going_back,
    notes_of,
    traps_of,
    window_sentences,
)
from system_tests.plan.uses import Use, check_uses
from system_tests.plan.way import assumed_running, offline_way, undo, way_between


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
        no_return: number of the first step, from 1, that no rolling bounces take back: it resets
            the application, or its way back does or stops all members; None: no such step.
        restores_from: number of the first step whose way back deletes state; None: no such step.
        obstacles: why rolling bounces are not possible.
        warnings: settings to leave alone, traps, formats; the traps first.
        traps: what makes the path a no go although rolling bounces are possible -> its warning.
        back_traps: the same of the ways back, without those of the path itself.
        way_out: how the traps are avoided, as an imperative; empty: there are none.
        instead: the step that stops all members and needs no bridge; None: the path has no
            bridge, or Kafka's guide does not have this step for it.
        windows: when a JVM leader may fail a group with native members in it.
        bugs: known issues of the releases, with ids.
        changes: what else changes between the releases, each with its source.
        brokers: those of the group, and whether they suffice; None: their release is not known.
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
    restores_from: int | None
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]
    traps: Mapping[Trap, str]
    back_traps: Mapping[Trap, str]
    way_out: str
    instead: PlanStep | None
    windows: tuple[str, ...]
    bugs: tuple[str, ...]
    changes: tuple[PathChange, ...] = ()
    not_checked: tuple[str, ...] = ()
    brokers: Brokers | None = None

    @property
    def bounces_by_leg(self) -> tuple[int, ...]:
        """Bounces that the protocol needs between two stops; formats may need one more."""
        pairs = pairwise(map(find_release, self.stops))
        return tuple(len(upgrade_path(old, new).stages()) for old, new in pairs)


def make_plan(
    old: Release,
    new: Release,
    uses: frozenset[Use] = frozenset(),
    *,
    threads: int = 1,
    subtopologies: int = 0,
    brokers: Release | None = None,
) -> UpgradePlan:
    """Return the plan that brings a group from `old` to `new`.

    Args:
        old: release that every member runs.
        new: target release.
        uses: features that the application uses.
        threads: stream threads in each process.
        subtopologies: of the application; 0: their number is not known.
        brokers: release of the brokers; None: not known.

    Raises:
        OptionError: one of the releases does not have a feature.
        ReleaseError: `brokers` is not a release of Kafka.
    """
    check_uses(old, new, uses)
    ends = assumed_running(old, new, uses)
    way = way_between(*ends, uses)
    notes = notes_of(way, uses, threads=threads, subtopologies=subtopologies)
    traps = [note for note in notes if note.stops_all]
    if traps:
        way = replace(offline_way(*ends, _whys(traps), uses), obstacles=_whys(traps))
    made = plan_of_way(
        way, ends, uses, threads=threads, subtopologies=subtopologies, brokers=brokers
    )
    return replace(made, traps={**made.traps, **traps_of(traps)})


def _whys(traps: Iterable[Note]) -> tuple[str, ...]:
    """Return why members are not bounced one at a time, as sentences."""
    return tuple(f"in rolling bounces, {note.text.removeprefix(NO_GO)}" for note in traps)


def plan_of_way(
    way: Way,
    ends: tuple[Running, Running],
    uses: frozenset[Use],
    *,
    threads: int = 1,
    subtopologies: int = 0,
    brokers: Release | None = None,
) -> UpgradePlan:
    """Return the plan that takes a way, with the traps that it runs into.

    Args:
        way: the way.
        ends: what the group runs before and after it.
        uses: features that the application uses.
        threads: stream threads in each process.
        subtopologies: of the application; 0: their number is not known.
        brokers: release of the brokers; None: not known.

    Raises:
        ReleaseError: `brokers` is not a release of Kafka.
    """
    first, goal = ends
    old, new = first.release, goal.release
    ran = (first, *(step.after for step in way.steps))
    begun = zip(way.steps, ran, strict=False)
    notes_about = partial(notes_of, uses=uses, threads=threads, subtopologies=subtopologies)
    backs = [_safe_undo(step, before, uses, notes_about) for step, before in begun]
    steps = tuple(
        replace(step, back=back, old_upgrade_from=before.upgrade_from)
        for step, back, before in zip(way.steps, backs, ran, strict=False)
    )
    no_return, restores_from = _prices_of_return(way, backs)
    own_brokers = None if brokers is None else brokers_of(brokers, ran, uses)
    notes = notes_about(way, brokers=own_brokers)
    traps = traps_of(notes)
    undone = traps_of(note for back in backs for note in notes_about(back))
    back_traps = {trap: going_back(undone[trap]) for trap in undone.keys() - traps.keys()}
    return UpgradePlan(
        old=old.name,
        new=new.name,
        uses=tuple(sorted(uses)),
        direction=upgrade_path(old, new).direction,
        rolling=way.rolling,
        stops=tuple(stop.name for stop in way.stops),
        steps=steps,
        no_return=no_return,
        restores_from=restores_from,
        obstacles=way.obstacles,
        warnings=(*(note.text for note in notes), *back_traps.values()),
        traps=traps,
        back_traps=back_traps,
        way_out="; ".join(dict.fromkeys(note.way_out for note in notes if note.way_out)),
        instead=_without_bridge(way, ends, uses),
        windows=window_sentences(old, new) if way.rolling else (),
        bugs=bug_sentences(way.stops, frozenset(uses)),
        changes=_changes(way, ends, uses, brokers),
        not_checked=NOT_CHECKED,
        brokers=own_brokers,
    )


def _without_bridge(
    way: Way, ends: tuple[Running, Running], uses: frozenset[Use]
) -> PlanStep | None:
    """Return the step that stops all members instead of a bridge; None: no bridge, or no such step.

    The Streams guides of 4.2 and later have it from 0.11.0 on, the earlier ones from 0.10.0 on.
    """
    old, new = (end.release for end in ends)
    is_bridged = way.rolling and bool(way.stops[1:-1])
    is_of_guide = (
        new.is_native
        or new.order < find_release("4.2.0").order
        or old.order >= find_release("0.11.0.0").order
    )
    if not is_bridged or not is_of_guide:
        return None
    return offline_way(*ends, (), uses).steps[0]


def _prices_of_return(way: Way, backs: Sequence[Way]) -> tuple[int | None, int | None]:
    """Return the first steps whose way back stops all members, and deletes state; None: none."""
    numbered = list(enumerate(zip(way.steps, backs, strict=True), 1))
    final = (at for at, (step, back) in numbered if step.resets or not back.rolling)
    costly = (at for at, (_, back) in numbered if back.deletions)
    return next(final, None), next(costly, None)


def _changes(
    way: Way, ends: tuple[Running, Running], uses: frozenset[Use], brokers: Release | None
) -> tuple[PathChange, ...]:
    """Return what else changes on a way."""
    is_switched = way.rolling and ends[0].version != ends[1].version
    switched_on = [stop.name for stop in way.stops if has_both(stop)][:is_switched]
    return changes_between(
        way.stops,
        uses,
        CHANGES,
        brokers=brokers,
        switched_on="".join(switched_on),
        done_in=_first_steps(way.steps),
    )


def _safe_undo(
    step: PlanStep,
    before: Running,
    uses: frozenset[Use],
    notes_about: Callable[[Way], Iterable[Note]],
) -> Way:
    """Return the way back of a step, which stops all members where bounces run into a trap."""
    back = undo(step, before, uses)
    traps = [note for note in notes_about(back) if note.stops_all]
    return offline_way(step.after, before, _whys(traps), uses) if traps else back


def _first_steps(steps: Sequence[PlanStep]) -> Mapping[Work, int]:
    """Return the number of the first step that does each work, as far as one does."""
    changed = (at for at, ends in enumerate(pairwise(steps), 2) if _differ(*ends))
    later = next(changed, None)  # a guarantee in the first step may only have another name there
    found: dict[Work, int] = {} if later is None else {Work.SWITCH: later}
    for number, step in enumerate(steps, 1):
        done = {
            Work.SWITCH: any(map(is_guarantee, step.settings)),
            Work.STOP: not step.rolling,
            Work.DRAIN: step.drains,
        }
        for work in (work for work, is_done in done.items() if is_done):
            found.setdefault(work, number)
    return found


def _differ(step: PlanStep, after: PlanStep) -> bool:
    """Whether two steps, one after the other, have two versions of exactly-once."""
    return {step.version, after.version} == {1, 2}


def is_fatal(made: UpgradePlan) -> bool:
    """Whether members can die on the way."""
    return Trap.FATAL in made.traps
