"""Whether a cell's expectation is true: bounces in the simulator, several seeds, worlds and orders.

A way that is said to work is gone with several seeds: none may break a rule. A way that is said to
need a pin, a bridge or a stop is tried without it until a rule breaks: if none ever does, the
release table is too careful, which is a disagreement too. Where nothing rolls, stopping all members
has to help; where a route is named, every leg has to roll.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from typing import Final

from probing import ReleaseError, find_release
from system_tests.matrix.expectation import CellOutcome, Expectation, expect
from system_tests.sim import (
    BounceOptions,
    Outcome,
    World,
    WorldSetup,
    leave_interrupts_to_the_parent,
    replay_command,
    run_bounce,
)

_SEEDS: Final = 4
_TRIES: Final = 90
_CHUNK: Final = 8
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
    """A bounce that broke a rule: which, the sentence, and the command that shows it again."""

    rule: str
    sentence: str
    replay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEvidence:
    """What the simulator showed of one pair.

    Attributes:
        old, new: names of the releases.
        outcome: what had been expected.
        runs: bounces of the expected way (or, where nothing rolls, stops of all members).
        longest_pause_ms: the most that one of them cost.
        unprepared: what a single bounce without a setting broke, None where that was not tried or
            nothing broke; tries: how many were needed.
        disagreements: sentences; empty if the expectation is true.
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
        old: name of a release.
        new: another one.
        seeds: bounces of the expected way.
        tries: the most bounces without a setting, where one is needed.

    Raises:
        ReleaseError: no such release.
    """
    expected = expect(find_release(old), find_release(new))
    outcomes = [outcome for leg in _legs(expected) for outcome in _runs(leg, seeds)]
    disagreements = [_disagreement(expected, outcome) for outcome in outcomes if not outcome.ok]
    unprepared, tried = None, 0
    if expected.outcome in _UNPREPARED:
        unprepared, tried = _break(expected, tries)
        if unprepared is None:
            disagreements.append(
                f"{expected.old} to {expected.new} is expected to be {expected.outcome}, and"
                f" {tried} bounces without any setting broke no rule"
            )
    if expected.fatal_setting and _starts(expected):
        disagreements.append(f"a simulated member starts although {expected.fatal_setting}")
    return CellEvidence(
        old=expected.old,
        new=expected.new,
        outcome=expected.outcome,
        runs=len(outcomes),
        longest_pause_ms=max((one.cost.longest_pause_ms for one in outcomes), default=0),
        unprepared=unprepared,
        tries=tried,
        disagreements=tuple(disagreements),
    )


def _legs(expected: Expectation) -> list[tuple[str, str, bool]]:
    """Return what is run: (old, new, offline), the way itself, its legs, and the stop of all."""
    if expected.outcome is CellOutcome.SAME:
        return []
    if expected.path.possible:
        return [(expected.old, expected.new, False)]
    stops = (expected.old, *expected.route, expected.new) if expected.route else ()
    rolling = [(old, new, False) for old, new in pairwise(stops)]
    return [*rolling, (expected.old, expected.new, True)]


def _runs(leg: tuple[str, str, bool], seeds: int) -> Iterator[Outcome]:
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


def _disagreement(expected: Expectation, outcome: Outcome) -> str:
    first = outcome.broken[0]
    return (
        f"{expected.old} to {expected.new} is expected to be {expected.outcome}, and a simulated"
        f" bounce broke '{first.rule}': {first.sentence}; see {replay_command(outcome)}"
    )


def _break(expected: Expectation, tries: int) -> tuple[Finding | None, int]:
    """Bounce once without a setting until a rule breaks."""
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
            found = Finding(
                rule=first.rule, sentence=first.sentence, replay=replay_command(outcome)
            )
            return found, seed + 1
    return None, tries


def _starts(expected: Expectation) -> bool:
    """Tell whether a member starts with the value that is said to be fatal."""
    lower, higher = sorted(
        (find_release(expected.old), find_release(expected.new)), key=lambda one: one.order
    )
    try:
        World(WorldSetup(processes=1)).start(0, higher.name, lower.series)
    except ReleaseError:
        return False
    return True


def gather_many(
    pairs: Sequence[tuple[str, str]], *, workers: int | None = None
) -> Iterator[CellEvidence]:
    """Simulate pairs on all cores, and yield each result as it is done, in no order.

    Args:
        pairs: names of releases.
        workers: processes; as many as there are cores by default. One: in this process.
    """
    chunks = [
        tuple(pairs[at::stride])
        for stride in (max(len(pairs) // _CHUNK, 1),)
        for at in range(stride)
    ]
    count = min(workers or os.cpu_count() or 1, len(chunks))
    if count <= 1:
        yield from (gather(old, new) for old, new in pairs)
        return
    with ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=leave_interrupts_to_the_parent
    ) as pool:
        for done in as_completed([pool.submit(_gather_chunk, chunk) for chunk in chunks]):
            yield from done.result()


def _gather_chunk(pairs: Sequence[tuple[str, str]]) -> tuple[CellEvidence, ...]:
    return tuple(gather(old, new) for old, new in pairs)
