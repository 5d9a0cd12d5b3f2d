"""Costs of a plan as text and as plain values: counts, pauses with their ranges, causes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from system_tests.plan.cost import FEWEST_FOR_PERCENTILES, StepCost, is_costly, summed
from system_tests.plan.figures import restore_text, rounded, spoken, unit_of
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.model import PlanStep
from system_tests.plan.uses import Use
from system_tests.sim.world import behaviour_of

LEFT_OUT: Final = (
    "left out: the time that a process takes to stop, while it still sends heartbeats, and that a"
    " new one takes from its assignment until its tasks run: some seconds on a JVM"
)
"""What the ranges of pauses do not contain, as a sentence without a full stop."""
_DEFINITIONS: Final = (
    (
        "a pause of a partition: from the stop of its member until a member processes it again; the"
        " next member is stopped when all partitions run, or 5 min after the group is Stable;"
        " stopped sooner, two pauses follow each other with no record processed between them"
    ),
    (
        "records to restore: read by members that get a task of another member, or bring their own"
        " copy up to date; the rest of a restore that a rebalance interrupts counts again; a thread"
        " reads its changelogs in parallel, and all partitions that it gets wait for the largest"
    ),
)
_EOS_LEFT_OUT: Final = (
    "exactly-once: the figures are the same with and without it; left out: a member that crashes"
    " deletes its state and restores all of it, and read_committed consumers wait for its open"
    " transactions until transaction.timeout.ms"
)
_WORTH_AN_ACTION: Final = 0.1
_WORTH_NAMING: Final = 0.01
_WORTH_DIGITS: Final = 0.01
AFTER_RESET: Final = "not in these figures: after the reset members process all of the input again"
_RESET: Final = (
    "the way back resets the application, whose members then process all of the input again: it"
    " takes as long as that, which is not simulated"
)
_REBALANCES: Final = (
    "rebalances, from the first request until each member has joined and has its tasks",
    "a shorter consumer.heartbeat.interval.ms shortens one part of them, the first",
)
_FIELDS: Final = ("rebalances", "duration_ms", "pause_ms", "longest_pause_ms", "restored")
_DIGITS: Final = (2, 3)
_WAITS: Final = ("session_ms", "restore_ms", "rebalance_ms")


class Cause(NamedTuple):
    """What pauses of a step wait for: its share of their sum, in words, and what shortens it."""

    share: float
    kind: str
    what: str
    setting: str


def session_timeout_s(step: PlanStep, group: SimulatedGroup) -> float:
    """Return the session timeout of the members that a step stops."""
    return (group.session_timeout_ms or behaviour_of(step.old, None).session_timeout_ms) / 1000


def causes_of(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> list[Cause]:
    """Return what the pauses of a step wait for, the largest share first; shares from 1 % on."""
    restore = f"state is restored, {group.restore:,} records a second from each changelog"
    found = (
        Cause(
            cost.share("session_ms"),
            "waits for stopped members",
            *_stopped(step, session_timeout_s(step, group), group),
        ),
        Cause(
            cost.share("restore_ms"),
            "restores",
            restore,
            f"raise num.standby.replicas above {group.standbys}",
        ),
        Cause(
            cost.share("rebalance_ms"),
            "rebalances" if step.rolling else "starts and rebalances",
            *(_REBALANCES if step.rolling else _starts(group)),
        ),
    )
    return sorted((c for c in found if c.share >= _WORTH_NAMING), key=lambda c: -c.share)


def _stopped(step: PlanStep, session_s: float, group: SimulatedGroup) -> tuple[str, str]:
    """Return how long stopped members are waited for and why, and what shortens it."""
    shorter = "set a shorter consumer.session.timeout.ms in a bounce before this step"
    if not step.rolling:
        return f"the sessions of all members last {session_s:g} s after their stop", shorter
    if step.expires and group.is_static:
        return (
            f"each member starts after its session of {session_s:g} s has expired, as demanded",
            shorter,
        )
    if group.is_static:
        return (
            (
                "a stopped static member keeps its tasks until it is back, after"
                f" {group.restarts}, or until its session of {session_s:g} s expires"
            ),
            "restart members faster; --restart-ms gives your own time",
        )
    return (
        f"members stop without leaving the group; their sessions last {session_s:g} s",
        (
            "set a shorter consumer.session.timeout.ms, or group.instance.id and restart within it;"
            " a member has it from its next start on: set it in a bounce before the first step, or"
            " in that step for the later ones"
        ),
    )


def _starts(group: SimulatedGroup) -> tuple[str, str]:
    """Return what an offline step waits for after the sessions, and what shortens it."""
    return (
        f"each member starts, {group.restarts} after the sessions have ended, and joins",
        "have all members ready to start",
    )


def definitions(uses: Collection[Use]) -> tuple[str, ...]:
    """Return what the figures are and what they leave out, as sentences with a title."""
    return (LEFT_OUT, *_DEFINITIONS, *((_EOS_LEFT_OUT,) if Use.EOS in uses else ()))


def actions_before(
    steps: Sequence[PlanStep], costs: Sequence[StepCost], group: SimulatedGroup
) -> list[tuple[str, str]]:
    """Return what pauses wait for, with shares, and what shortens them, the largest share first."""
    found: dict[tuple[str, str], list[float]] = {}
    for step, cost in zip(steps, costs, strict=True):
        for cause in causes_of(step, cost, group) if cost.is_cost else ():
            if cause.share >= _WORTH_AN_ACTION:
                found.setdefault((cause.kind, cause.setting), []).append(cause.share)
    actions = []
    for (kind, setting), shares in sorted(found.items(), key=lambda row: -max(row[1])):
        low, high = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
        percent = low if low == high else f"{low} to {high}"
        which = f" in {len(shares)} of {len(steps)} steps" if len(shares) < len(steps) else ""
        actions.append((f"{percent} % of all pauses together are {kind}{which}", setting))
    return actions


def costs_lines(
    steps: Sequence[PlanStep],
    costs: Sequence[StepCost],
    group: SimulatedGroup,
    uses: Collection[Use] = (),
) -> Iterator[str]:
    """Yield the costs of all steps, with the group that they are simulated with."""
    assumed = "" if group.is_real else "an assumed group (--problem or --group gives yours): "
    yield f"Costs, simulated with {assumed}{group}; {simulated_text(costs[0])}"
    for line in (*definitions(uses), *group.notes):
        yield f"       {line}"
    for number, (step, cost) in enumerate(zip(steps, costs, strict=True), 1):
        lines = (*cost_lines(step, cost, group), *price_of_return([step], [cost]))
        for at, line in enumerate(lines):
            yield f"  {' ' * len(f'step {number}:') if at else f'step {number}:'} {line}"
    if len(steps) > 1:
        yield from (f"  all steps: {line}" for line in price_of_return(steps, costs))
    actions = actions_before(steps, costs, group)
    if actions:
        yield "  before you start, to shorten the pauses:"
        yield from (f"  - {what}: {setting}" for what, setting in actions)


def cost_lines(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> Iterator[str]:
    """Yield the cost of a step: counts, pauses with their ranges, causes; or why there is none."""
    yield from cost.verdict
    if not cost.is_cost:
        return
    more = "; copies still warm up at the end of the simulation" if cost.is_warming else ""
    yield (
        f"{count_text(cost, 'rebalances')} rebalances ({cost.usual('membership')} for members that"
        f" stop and start, {cost.usual('version')} for the version, {cost.usual('followup')} to"
        f" move partitions{more})"
    )
    yield duration_text(cost, is_rolling=step.rolling)
    yield _pauses_text(cost)
    yield from restored_lines(cost, group)
    if step.resets:
        yield AFTER_RESET
    for cause in causes_of(step, cost, group):
        yield f"{100 * cause.share:.0f} % of all pauses together: {cause.what}"


def price_of_return(steps: Sequence[PlanStep], costs: Sequence[StepCost]) -> tuple[str, ...]:
    """Return what it costs to undo steps, as sentences; nothing if it costs what the steps do.

    Args:
        steps: that are undone.
        costs: of these steps.
    """
    again = [own for step in steps if step.back is not None for own in step.back.steps]
    if any(own.resets for own in again):
        return (_RESET,)
    cost = cost_of_return(costs)
    if cost is None or not any(map(is_costly, steps)):
        return ()
    bounces = sum(own.rolling for own in again)
    parts = [f"{bounces} rolling bounce{'s' * (bounces > 1)}"] * (bounces > 0)
    parts += ["a stop of all members"] * (bounces < len(again))
    path = f"the way back ({' and '.join(parts)})"
    if not cost.is_cost:
        return (f"{path}: {'; '.join(cost.verdict)}",)
    times = sum(own.loses for own in again)
    often = "" if len(again) == 1 else " once" if times == 1 else f" {times} times"
    deletes = f"; each member deletes its state{often} and restores it" * (times > 0)
    waits = "; each member starts after its session has expired" * any(o.expires for o in again)
    return (
        f"{path} {duration_text(cost, is_rolling=bounces == len(again))}{deletes}{waits}",
        f"on the way back {_pauses_text(cost)}; {count_text(cost, 'restored')} records to restore",
    )


def cost_of_return(costs: Sequence[StepCost]) -> StepCost | None:
    """Return what it costs to undo steps of these costs; None if that is not simulated."""
    backs = [cost.back for cost in costs if cost.back is not None]
    return summed(backs) if backs else None


def restored_lines(cost: StepCost, group: SimulatedGroup) -> Iterator[str]:
    """Yield how many records a step restores and why, and the arithmetic of the time."""
    yield f"{count_text(cost, 'restored')} records to restore"
    middle = cost.middle("restore_ms")
    if middle.largest:
        yield (
            f"in the median bounce a partition waits for {rounded(middle.largest):,} records at"
            f" most: {restore_text(middle.largest, group.restore)};"
            f" {middle.waiting:,} pauses wait {spoken(middle.restore_ms)} s together for state"
        )


def _pauses_text(cost: StepCost) -> str:
    return (
        f"the longest pause of a partition {seconds_text(cost, 'longest_pause_ms')};"
        f" of all partitions together {seconds_text(cost, 'pause_ms')}"
    )


def duration_text(cost: StepCost, *, is_rolling: bool) -> str:
    """Return how long steps take, as simulated, with its range."""
    how = "with one member after the other" if is_rolling else "from the first stop on"
    unit, seconds = unit_of(cost.usual("duration_ms"))
    time = _with_range(
        cost, "duration_ms", lambda ms, digits: spoken(ms // seconds, digits), f" {unit}"
    )
    return f"takes about {time} {how}"


def seconds_text(cost: StepCost, name: str) -> str:
    """Return a time of a step with its range, in seconds."""
    return _with_range(cost, name, spoken, " s")


def printed_most_s(cost: StepCost, name: str) -> float:
    """Return the upper end of the range that `seconds_text` prints, in seconds."""
    return float(_range_texts(cost, name, spoken)[-1].replace(",", ""))


def count_text(cost: StepCost, name: str) -> str:
    """Return a number of a step with its range."""
    return _with_range(cost, name, lambda number, digits: f"{rounded(number, digits):,}")


def _with_range(cost: StepCost, name: str, text: Callable[[int, int], str], unit: str = "") -> str:
    """Return a field of `StepRun` with its range."""
    low, usual, high = _range_texts(cost, name, text)
    return f"{usual}{unit}" + f" ({low} to {high})" * (not low == usual == high)


def _range_texts(cost: StepCost, name: str, text: Callable[[int, int], str]) -> list[str]:
    """Return the low end, the median and the high end of a field of `StepRun` as texts.

    They have three digits where two hide a difference of 1 % or more. `text` makes a value with so
    many digits.
    """
    low, high = cost.spread(name)
    values = (low, cost.usual(name), high)
    few, more = ([text(value, digits) for value in values] for digits in _DIGITS)
    is_hidden = len(set(more)) > len(set(few)) and high - low >= _WORTH_DIGITS * high
    return more if is_hidden else few


def simulated_text(cost: StepCost) -> str:
    """Return how many bounces a cost is from, and what its ranges are."""
    count = len(cost.all_runs)
    if count == 1:
        return "1 bounce, so without ranges (--seeds)"
    if count < FEWEST_FOR_PERCENTILES:
        return f"{count} bounces; in brackets: smallest to largest (--seeds for more)"
    return f"{count} bounces; in brackets: 5 % to 95 % of them"


def cost_document(cost: StepCost) -> dict[str, object]:
    """Return the cost of a step as plain values, in ms, or why there are no figures.

    `back` is the cost of its way back in the same form; null if it is not simulated.
    """
    verdict: dict[str, object] = {"is_cost": cost.is_cost, "kills": cost.kills}
    verdict["back"] = cost.back and cost_document(cost.back)
    verdict["broken"] = [asdict(found) for found in cost.broken]
    if not cost.is_cost:
        return verdict | {"seeds": len(cost.all_runs)}
    return verdict | {
        **{name: cost.usual(name) for name in ("membership", "version", "followup", *_FIELDS)},
        "ranges": {name: list(cost.spread(name)) for name in _FIELDS},
        "waits_ms": {name: cost.usual(name) for name in _WAITS},
        "largest": cost.middle("restore_ms").largest,
        "waiting": cost.middle("restore_ms").waiting,
        "is_warming": cost.is_warming,
        "seeds": len(cost.all_runs),
    }
