"""Costs of a plan as text and as plain values: counts, pauses with their ranges, causes."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from system_tests.plan.cost import StepCost
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.steps import PlanStep
from system_tests.sim.world import behaviour_of

LEFT_OUT: Final = (
    "left out: the time that a process takes to stop, while it still sends heartbeats, and that a"
    " new one takes from its assignment until its tasks run: some seconds on a JVM"
)
"""What the ranges of pauses do not contain, as a sentence without a full stop."""
_WORTH_NAMING: Final = 0.01
_FIELDS: Final = ("rebalances", "pause_ms", "longest_pause_ms", "restored")
_WAITS: Final = ("session_ms", "restore_ms", "rebalance_ms")


class Cause(NamedTuple):
    """What pauses of a step wait for: its share of them, in words, and what shortens it."""

    share: float
    what: str
    setting: str


def session_timeout_s(step: PlanStep, group: SimulatedGroup) -> float:
    """Return the session timeout of the members that a step stops."""
    return (group.session_timeout_ms or behaviour_of(step.old, None).session_timeout_ms) / 1000


def causes_of(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> list[Cause]:
    """Return what the pauses of a step wait for, the largest share first; shares from 1 % on."""
    session_s = session_timeout_s(step, group)
    if group.is_static:
        stopped = (
            "a stopped static member keeps its tasks until it is back, after"
            f" {group.restarts}, or until its session of {session_s:g} s expires"
        )
        setting = "restart members faster; --restart-ms gives your own time"
    else:
        stopped = f"members stop without leaving the group; their sessions last {session_s:g} s"
        setting = (
            "set a shorter consumer.session.timeout.ms, or group.instance.id and restart within it"
        )
    found = (
        Cause(cost.share("session_ms"), stopped, setting),
        Cause(
            cost.share("restore_ms"),
            f"state is restored, {group.restore:,} records a second from each changelog",
            f"raise num.standby.replicas above {group.standbys}",
        ),
        Cause(
            cost.share("rebalance_ms"),
            "rebalances, which a member learns of with its next heartbeat",
            "set a shorter consumer.heartbeat.interval.ms",
        ),
    )
    return sorted((c for c in found if c.share >= _WORTH_NAMING), key=lambda c: -c.share)


def costs_lines(
    steps: Sequence[PlanStep], costs: Sequence[StepCost], group: SimulatedGroup
) -> Iterator[str]:
    """Yield the costs of all steps, with the group that they are simulated with."""
    assumed = "" if group.is_real else "an assumed group (--problem or --group gives yours): "
    yield f"Costs, simulated with {assumed}{group}; {simulated_text(costs[0])}"
    yield f"       {LEFT_OUT}"
    for note in group.notes:
        yield f"       {note}"
    for number, (step, cost) in enumerate(zip(steps, costs, strict=True), 1):
        for at, line in enumerate(cost_lines(step, cost, group)):
            yield f"  {' ' * len(f'step {number}:') if at else f'step {number}:'} {line}"


def cost_lines(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> Iterator[str]:
    """Yield the cost of a step: counts, pauses with their ranges, causes."""
    more = "; copies still warm up at the end of the simulation" if cost.is_warming else ""
    yield (
        f"{count_text(cost, 'rebalances')} rebalances ({cost.usual('membership')} for members that"
        f" stop and start, {cost.usual('version')} for the version, {cost.usual('followup')} to"
        f" move partitions{more})"
    )
    yield (
        f"the longest pause of a partition {seconds_text(cost, 'longest_pause_ms')};"
        f" of all partitions together {seconds_text(cost, 'pause_ms')}"
    )
    yield from restored_lines(cost, group)
    for cause in causes_of(step, cost, group):
        yield f"{100 * cause.share:.0f} % of the pauses: {cause.what}; {cause.setting}"


def restored_lines(cost: StepCost, group: SimulatedGroup) -> Iterator[str]:
    """Yield how many records a step restores and why, and the arithmetic of the time."""
    yield (
        f"{count_text(cost, 'restored')} records to restore, by members that get a task of another"
        " one or bring their own copy up to date; the rest of a restore that a rebalance interrupts"
        " counts again"
    )
    middle = cost.middle("restore_ms")
    if middle.largest:
        longest_ms = -(-middle.largest * 1000 // group.restore)
        yield (
            "in the median bounce a partition waits at most until"
            f" {middle.largest:,} records are read: {middle.largest:,} / {group.restore:,} a second"
            f" = {_spoken(longest_ms)} s; a thread reads its changelogs in parallel, and all"
            " partitions that it gets wait for the largest:"
            f" {middle.waiting:,} pauses wait {_spoken(middle.restore_ms)} s together"
        )


def seconds_text(cost: StepCost, name: str) -> str:
    """Return a time of a step with its range, in seconds."""
    low, high = (_spoken(ms) for ms in cost.spread(name))
    usual = _spoken(cost.usual(name))
    return f"{usual} s" if low == high == usual else f"{usual} s ({low} to {high})"


def count_text(cost: StepCost, name: str) -> str:
    """Return a number of a step with its range."""
    low, high = cost.spread(name)
    usual = cost.usual(name)
    return f"{usual:,}" if low == high == usual else f"{usual:,} ({low:,} to {high:,})"


def _spoken(ms: int) -> str:
    """Return seconds with two significant digits: the rest is noise of the simulation.

    >>> [_spoken(ms) for ms in (0, 212, 5_149, 47_117, 274_684, 6_005_770)]
    ['0', '0.21', '5.1', '47', '270', '6,000']
    """
    seconds = float(f"{ms / 1000:.2g}")
    return f"{seconds:,.0f}" if seconds >= 10 or not seconds else f"{seconds:g}"  # noqa: PLR2004 digits


def simulated_text(cost: StepCost) -> str:
    """Return how many bounces a cost is from, and what its ranges are."""
    if len(cost.runs) == 1:
        return "1 bounce, so without ranges (--seeds)"
    return f"{len(cost.runs)} bounces; in brackets: 5 % to 95 % of them; compare paths with them"


def cost_document(cost: StepCost) -> dict[str, object]:
    """Return the cost of a step as plain values; times in ms."""
    return {
        **{name: cost.usual(name) for name in ("membership", "version", "followup", *_FIELDS)},
        "ranges": {name: list(cost.spread(name)) for name in _FIELDS},
        "waits_ms": {name: cost.usual(name) for name in _WAITS},
        "largest": cost.middle("restore_ms").largest,
        "waiting": cost.middle("restore_ms").waiting,
        "is_warming": cost.is_warming,
        "seeds": len(cost.runs),
    }
