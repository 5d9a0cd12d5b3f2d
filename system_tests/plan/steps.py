"""Plans: the way between two releases, the way back after each step, and what else counts."""

from dataclasses import dataclass, replace
from itertools import pairwise

from probing import Direction, Release, find_release, upgrade_path
from system_tests.plan.changes import CHANGES, NOT_CHECKED, PathChange, changes_between
from system_tests.plan.exactly_once import has_both
from system_tests.plan.model import PlanStep
from system_tests.plan.notes import FATAL, bug_sentences, notes_of, window_sentences
from system_tests.plan.uses import Use, check_uses
from system_tests.plan.way import assumed_running, way_back, way_between


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
        no_return: number of the step, from 1, that deletes state, or after which the way back
            deletes state, resets the application or stops all members; None: no such step.
        obstacles: why rolling bounces are not possible.
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


def make_plan(
    old: Release, new: Release, uses: frozenset[Use] = frozenset(), *, threads: int = 1
) -> UpgradePlan:
    """Return the plan that brings a group from `old` to `new`.

    Args:
        old: release that every member runs.
        new: target release.
        uses: features that the application uses.
        threads: stream threads in each process.

    Raises:
        OptionError: one of the releases does not have a feature.
    """
    check_uses(old, new, uses)
    first, goal = assumed_running(old, new, uses)
    way = way_between(first, goal, uses)
    steps = tuple(replace(step, back=way_back(step, first, uses)) for step in way.steps)
    final = [at for at, step in enumerate(steps, 1) if step.loses or not _is_free(step)]
    is_switched = way.rolling and first.version != goal.version
    switched_on = [stop.name for stop in way.stops if has_both(stop)][:is_switched]
    return UpgradePlan(
        old=old.name,
        new=new.name,
        uses=tuple(sorted(uses)),
        direction=upgrade_path(old, new).direction,
        rolling=way.rolling,
        stops=tuple(stop.name for stop in way.stops),
        steps=steps,
        no_return=final[0] if final else None,
        obstacles=way.obstacles,
        warnings=notes_of(way.stops, frozenset(uses), threads=threads),
        windows=window_sentences(old, new),
        bugs=bug_sentences(way.stops, frozenset(uses)),
        changes=changes_between(way.stops, uses, CHANGES, switched_on="".join(switched_on)),
        not_checked=NOT_CHECKED,
    )


def _is_free(step: PlanStep) -> bool:
    return step.back is not None and step.back.free


def is_fatal(made: UpgradePlan) -> bool:
    """Whether a warning of a plan says that members can die on the way."""
    return any(warning.startswith(FATAL) for warning in made.warnings)
