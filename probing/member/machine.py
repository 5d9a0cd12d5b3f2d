"""Version probing of one member as a state machine: events in, commands out.

The state is small: the version that the member writes, and when it wants the next rebalance. The
tables of its model (``used_version.py``) decide about versions; ``FOLLOWUP_RULES`` then decides
about the follow-up rebalances of KIP-441.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, assert_never

from probing.features import FinalizedLevels, newest_levels
from probing.member import used_version
from probing.member.events import (
    ERROR_NAMES,
    INFORMATIVE_ERROR,
    AssignmentReceived,
    ClearSchedule,
    Command,
    Event,
    IgnoreTasks,
    KeepVersion,
    LevelsPolled,
    RebalanceStarted,
    Refuse,
    RejoinNow,
    ReportError,
    ScheduleRebalance,
    TimePassed,
    WriteNextTime,
)
from probing.member.level_cap import capped_version, protocol_level
from probing.member.next_subscription import MemberState, go_by
from probing.member.used_version import (
    DROPS_TASKS,
    FIRES_DURING_REBALANCE,
    HAS_FOLLOWUPS,
    SURVIVES_ERRORS,
    Action,
    VersionNumbers,
)
from probing.rules import Rule, Rules, always, first
from probing.versions import NO_REBALANCE

FOLLOWUP_RULES: Final[Rules[AssignmentReceived, Callable[[AssignmentReceived], int]]] = (
    Rule(
        name="host is missing",
        holds=lambda e: e.host_missing,
        says=lambda _: 0,
        why="the group's host map lacks this member's endpoint; rejoin to add it",
    ),
    Rule(
        name="tasks wait to be revoked",
        holds=lambda e: e.next_rebalance_ms <= 0,
        says=lambda _: 0,
        why="the leader asks for a rebalance at once: tasks must be revoked before they move",
    ),
    Rule(
        name="follow-up was asked for",
        holds=lambda e: e.next_rebalance_ms < NO_REBALANCE,
        says=lambda e: e.next_rebalance_ms,
        why="the leader asks for a rebalance at {at_ms} ms: warm-ups may be caught up then",
    ),
    Rule(
        name="nothing to follow",
        holds=always,
        says=lambda _: NO_REBALANCE,
        why="no follow-up rebalance was asked for",
    ),
)
"""When the next rebalance is; 0: now. Kafka has these conditions in this order since 2.6."""


def member_step(state: MemberState, event: Event) -> tuple[MemberState, tuple[Command, ...]]:
    """Return the state after one event, and the commands to carry out, in order.

    No answer of a leader raises. A member that cannot continue returns ``Refuse`` and ignores all
    later events; a native member refuses only that answer. Every answer yields at least one
    command, which names the rule that decided.
    """
    if state.refusal is not None:
        return state, ()
    match event:
        case AssignmentReceived():
            state, commands = _assignment_received(replace(state, rebalancing=False), event)
            if event.native is None or state.refusal is not None:
                return state, commands
            return _take_levels(state, event.native.levels, commands)
        case RebalanceStarted():
            return replace(state, rebalancing=True), ()
        case LevelsPolled():
            return replace(state, polled=newest_levels((state.polled, event.polled))), ()
        case TimePassed(now_ms=now_ms):
            return _time_passed(state, now_ms)
        case _:
            assert_never(event)


def _take_levels(
    state: MemberState, levels: FinalizedLevels, commands: tuple[Command, ...]
) -> tuple[MemberState, tuple[Command, ...]]:
    """Adopt the levels of an answer; add a command if they change the version written next."""
    after = go_by(state, levels)
    if after.refusal is not None:
        return after, (after.refusal,)
    level = protocol_level(after.levels)
    used = capped_version(after.all_versions, after.used_version, level)
    if used == state.used_version:
        return after, commands
    capped = WriteNextTime(
        used_version=used,
        rule="finalized level",
        why=f"the protocol is finalized at level {level} since epoch {after.levels.epoch};"
        f" write version {used} next time instead of {state.used_version}",
    )
    return replace(after, used_version=used), (*commands, capped)


def _assignment_received(
    state: MemberState, event: AssignmentReceived
) -> tuple[MemberState, tuple[Command, ...]]:
    numbers = VersionNumbers(
        used=state.used_version,
        received=event.received_version,
        common=event.commonly_supported_version,
        error_code=event.error_code,
        known=state.known_versions,
        led_supported=event.led_supported_version,
        native_known=state.native_versions,
        native=event.native,
        pinned=state.pinned,
    )
    rule = first(used_version.MEMBER_RULES[state.model], numbers)
    version = rule.says.writes(numbers)
    why = rule.sentence(numbers)
    match rule.says.action:
        case Action.REFUSE:
            refusal = Refuse(rule=rule.name, why=why)
            if state.model in SURVIVES_ERRORS:
                return state, (refusal,)
            return replace(state, refusal=refusal), (refusal,)
        case Action.REPORT:
            return _report_error(state, event.error_code, rule=rule.name, why=why)
        case Action.REJOIN:
            moved = replace(state, used_version=version, next_rebalance_ms=NO_REBALANCE)
            rejoin = RejoinNow(used_version=version, rule=rule.name, why=why)
            if state.model not in DROPS_TASKS:
                return moved, (rejoin,)
            ignore = IgnoreTasks(
                rule="tasks of a probing answer",
                why="this release ignores the tasks of a probing answer (KAFKA-8972)",
            )
            return moved, (ignore, rejoin)
        case Action.NEXT_TIME:
            later = WriteNextTime(used_version=version, rule=rule.name, why=why)
            state, followup = _follow_up(replace(state, used_version=version), event)
            return state, (later, *followup)
        case Action.KEEP:
            keep = KeepVersion(used_version=version, rule=rule.name, why=why)
            state, followup = _follow_up(state, event)
            return state, (keep, *followup)
        case _:
            assert_never(rule.says.action)


def _report_error(
    state: MemberState, code: int, *, rule: str, why: str
) -> tuple[MemberState, tuple[Command, ...]]:
    """Report the error; a Kafka member also stops, unless the code is informative."""
    report = ReportError(code=code, rule=rule, why=why)
    if code == INFORMATIVE_ERROR or state.model in SURVIVES_ERRORS:
        return state, (report,)
    refusal = Refuse(
        rule="error ends the member",
        why=f"release {state.release_name} stops at error {code}"
        f" ({ERROR_NAMES.get(code, 'unknown')}); fix the cause and restart the member",
    )
    return replace(state, refusal=refusal), (report, refusal)


def _follow_up(
    state: MemberState, event: AssignmentReceived
) -> tuple[MemberState, tuple[Command, ...]]:
    """Decide about the next rebalance, for models that have follow-ups."""
    if state.model not in HAS_FOLLOWUPS:
        return state, ()
    rule = first(FOLLOWUP_RULES, event)
    at_ms = rule.says(event)
    why = rule.sentence(event, at_ms=at_ms)
    if at_ms == 0:
        rejoin = RejoinNow(used_version=state.used_version, rule=rule.name, why=why)
        return replace(state, next_rebalance_ms=NO_REBALANCE), (rejoin,)
    scheduled = replace(state, next_rebalance_ms=at_ms)
    if at_ms == NO_REBALANCE:
        return scheduled, (ClearSchedule(rule=rule.name, why=why),)
    return scheduled, (ScheduleRebalance(at_ms=at_ms, rule=rule.name, why=why),)


def _time_passed(state: MemberState, now_ms: int) -> tuple[MemberState, tuple[Command, ...]]:
    """Rejoin when the scheduled time has come, and no rebalance is running."""
    waits = state.rebalancing and state.model not in FIRES_DURING_REBALANCE
    if state.next_rebalance_ms > now_ms or waits:
        return state, ()
    rejoin = RejoinNow(
        used_version=state.used_version,
        rule="follow-up is due",
        why=f"the rebalance asked for at {state.next_rebalance_ms} ms is due at {now_ms} ms",
    )
    return replace(state, next_rebalance_ms=NO_REBALANCE), (rejoin,)
