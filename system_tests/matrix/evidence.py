"""Simulated evidence for the expectation of a cell: bounces with several seeds and group sizes.

- An expected path is simulated with several seeds: no bounce may break a rule.
- If a pin, a bridge or a stop of all members is expected to be needed, bounces without it are
  simulated until one breaks a rule. If none does, the release table is too careful, which is a
  disagreement, too.
- If no rolling bounce is expected to work, stopping all members has to work.
- If a route is named, every leg has to work as a rolling bounce.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from assignor.workers import results_of
from probing import ReleaseError, find_release
from system_tests.matrix.expectation import CellOutcome, Expectation, expect
from system_tests.sim import BounceOptions, BounceOutcome, World, WorldSetup, run_bounce

_SEEDS: Final = 4
_TRIES: Final = 90
# (members, partitions): tasks have to move, or an eager and a cooperative member never meet.
_WORLDS: Final = ((3, 6), (4, 8), (5, 8))
_UNPREPARED: Final = frozenset(
    {
        CellOutcome.TWO_BOUNCES,
        CellOutcome.BRIDGE,
        CellOutcome.BROKEN,
        CellOutcome.REFUSED,
        CellOutcome.OFFLINE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A bounce that broke a rule: the rule, a sentence, and the command that replays it."""

    rule: str
    sentence: str
    replay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEvidence:
    """The simulation of one pair.

    Attributes:
        old, new: names of the releases.
        outcome: the expected outcome.
        runs: number of simulated bounces, or stops of all members, of the expected path.
        longest_pause_ms: longest pause of a partition in any of them.
        unprepared: rule that a single bounce without a setting broke; None if this was not
            simulated or no bounce broke a rule.
        tries: number of bounces without a setting that were simulated.
        disagreements: sentences; empty if the expectation is confirmed.
    """

    old: str
    new: str
    outcome: CellOutcome
    runs: int
    longest_pause_ms: int
    unprepared: Finding | None
    tries: int
    disagreements: tuple[str, ...]


def gather(old: str, new: str, *, seeds: int = _SEEDS, tries: int = _TRIES) -> CellEvidence:
    """Simulate one pair.

    Args:
        old: name of the release that the group runs.
        new: name of the target release.
        seeds: number of bounces of the expected path.
        tries: maximum number of bounces without a setting, if one is expected to be needed.

    Raises:
        ReleaseError: a release is unknown.
    """
    expected = expect(find_release(old), find_release(new))
    outcomes = [outcome for leg in _legs(expected) for outcome in _runs(leg, seeds)]
    disagreements = [_disagreement(expected, outcome) for outcome in outcomes if not outcome.ok]
    unprepared, tried = None, 0
    if expected.outcome in _UNPREPARED:
        unprepared, tried = _break(expected, tries)
        if unprepared is None:
            disagreements.append(
                f"{expected.old} to {expected.new}: expected '{expected.outcome}', but"
                f" {tried} bounces without any setting broke no rule"
            )
    if expected.fatal_setting and _starts(expected):
        disagreements.append(f"a simulated member starts, but expected: {expected.fatal_setting}")
    return CellEvidence(
        old=expected.old,
        new=expected.new,
        outcome=expected.outcome,
        runs=len(outcomes),
        longest_pause_ms=max((outcome.cost.longest_pause_ms for outcome in outcomes), default=0),
        unprepared=unprepared,
        tries=tried,
        disagreements=tuple(disagreements),
    )


def _legs(expected: Expectation) -> list[tuple[str, str, bool]]:
    """Return the bounces to simulate, as (old, new, offline): the path or its legs, and a stop."""
    if expected.outcome is CellOutcome.SAME:
        return []
    if expected.path.possible:
        return [(expected.old, expected.new, False)]
    stops = (expected.old, *expected.route, expected.new) if expected.route else ()
    rolling = [(old, new, False) for old, new in pairwise(stops)]
    return [*rolling, (expected.old, expected.new, True)]


def _runs(leg: tuple[str, str, bool], seeds: int) -> Iterator[BounceOutcome]:
    old, new, offline = leg
    for seed in range(seeds):
        members, partitions = _WORLDS[seed % len(_WORLDS)]
        yield run_bounce(
            BounceOptions(
                seed=seed,
                old=old,
                new=new,
                members=members,
                partitions=partitions,
                offline=offline,
            )
        )


def _disagreement(expected: Expectation, outcome: BounceOutcome) -> str:
    first = outcome.broken[0]
    return (
        f"{expected.old} to {expected.new}: expected '{expected.outcome}', but a simulated"
        f" bounce broke '{first.rule}': {first.sentence}; replay: {outcome.replay}"
    )


def _break(expected: Expectation, tries: int) -> tuple[Finding | None, int]:
    """Return the first single bounce without a setting that breaks a rule, and the tries."""
    for seed in range(tries):
        members, partitions = _WORLDS[seed % len(_WORLDS)]
        outcome = run_bounce(
            BounceOptions(
                seed=seed,
                old=expected.old,
                new=expected.new,
                members=members,
                partitions=partitions,
                force=True,
            )
        )
        if outcome.broken:
            first = outcome.broken[0]
            found = Finding(rule=first.rule, sentence=first.sentence, replay=outcome.replay)
            return found, seed + 1
    return None, tries


def _starts(expected: Expectation) -> bool:
    """Whether a simulated member starts with the `upgrade.from` that is expected to be fatal."""
    lower, higher = sorted(
        (find_release(expected.old), find_release(expected.new)), key=lambda release: release.order
    )
    try:
        World(WorldSetup(processes=1)).start(0, higher.name, lower.series)
    except ReleaseError:
        return False
    return True


def gather_many(
    pairs: Sequence[tuple[str, str]], *, workers: int | None = None
) -> Iterator[CellEvidence]:
    """Simulate pairs in several processes; yield the results in order.

    Args:
        pairs: (old, new), names of releases.
        workers: number of processes; default: one per core. 1: run in this process.
    """
    return results_of(_gather_pair, pairs, workers=workers)


def _gather_pair(pair: tuple[str, str]) -> CellEvidence:
    return gather(*pair)
