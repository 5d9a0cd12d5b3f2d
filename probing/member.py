"""One member's half of version probing: events in, commands out.

A member remembers little: the version it writes, and when it wants the next rebalance. Everything
else is looked up in the tables of its model (``member_rules``), and what happens after the version
question is settled - the follow-ups of KIP-441 - in ``FOLLOWUP_RULES`` here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, assert_never

from probing.events import (
    ERROR_NAMES,
    INFORMATIVE_ERROR,
    AssignmentReceived,
    ClearSchedule,
    Command,
    Event,
    IgnoreTasks,
    KeepVersion,
    RebalanceStarted,
    Refuse,
    RejoinNow,
    ReportError,
    ScheduleRebalance,
    TimePassed,
    WriteNextTime,
)
from probing.member_rules import (
    DROPS_TASKS,
    FIRES_DURING_REBALANCE,
    HAS_FOLLOWUPS,
    SURVIVES_ERRORS,
    Action,
    VersionNumbers,
    first_rule,
)
from probing.models import MemberModel
from probing.releases import Release, ReleaseError
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    NO_REBALANCE,
    UNKNOWN_VERSION,
    greatest_known_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """What one member (one consumer, not one process) remembers.

    Attributes:
        release_name: for sentences.
        model: which tables apply.
        known_versions: every version of Kafka's that it reads and writes.
        used_version: the version of its next subscription.
        upgrade_from: the setting it was started with, None if not set.
        native_versions: every version of ours that it reads and writes; none for Kafka's members.
        pinned: ``upgrade_from`` pins the used version.
        next_rebalance_ms: when it wants to rejoin, ``NO_REBALANCE`` for never.
        rebalancing: a rebalance is running.
        refusal: set once the member cannot go on; from then on events change nothing.
    """

    release_name: str
    model: MemberModel
    known_versions: tuple[int, ...]
    used_version: int
    upgrade_from: str | None = None
    native_versions: tuple[int, ...] = ()
    pinned: bool = False
    next_rebalance_ms: int = NO_REBALANCE
    rebalancing: bool = False
    refusal: Refuse | None = None

    @property
    def latest_version(self) -> int:
        """Return the highest version of Kafka's that the member reads and writes."""
        return max(self.known_versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionVersion:
    """The two numbers at the head of the next subscription, and what the trailer adds.

    Attributes:
        used: the version to write.
        latest_supported: the second number; unknown (-1) below version 3, which has no room for
            it. At most Kafka's newest version as long as ``used`` is one of Kafka's: a JVM leader
            hands out any version up to the lowest supported one.
        native: the latest native version that the member reads; None for Kafka's members.
        pinned: ``upgrade.from`` pins ``used``; said in the trailer.
    """

    used: int
    latest_supported: int
    native: int | None = None
    pinned: bool = False

    @property
    def has_trailer(self) -> bool:
        """Tell whether native knowledge follows the fields of a version of Kafka's."""
        return self.native is not None and self.used < EARLIEST_NATIVE_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowupRule:
    """One row of the follow-ups: when it holds, the command it makes."""

    name: str
    holds: Callable[[AssignmentReceived], bool]
    at_ms: Callable[[AssignmentReceived], int]
    why: str


FOLLOWUP_RULES: Final = (
    FollowupRule(
        name="host is missing",
        holds=lambda e: e.host_missing,
        at_ms=lambda _: 0,
        why="the group's host map does not name this member's endpoint; rejoin to be in it",
    ),
    FollowupRule(
        name="tasks wait to be revoked",
        holds=lambda e: e.next_rebalance_ms <= 0,
        at_ms=lambda _: 0,
        why="the leader asks for the next rebalance at once: tasks wait for their owners",
    ),
    FollowupRule(
        name="follow-up was asked for",
        holds=lambda e: e.next_rebalance_ms < NO_REBALANCE,
        at_ms=lambda e: e.next_rebalance_ms,
        why="the leader asks for a rebalance at {at_ms} ms: warm-ups may have caught up by then",
    ),
    FollowupRule(
        name="nothing to follow",
        holds=lambda _: True,
        at_ms=lambda _: NO_REBALANCE,
        why="no follow-up rebalance was asked for",
    ),
)
"""First row that holds, wins. Kafka asks the same questions in the same order since 2.6."""


def start_member(
    release: Release,
    *,
    upgrade_from: str | None = None,
    remembered_version: int | None = None,
    start_version: Literal["latest"] | None = None,
) -> MemberState:
    """Return a member of ``release`` that has just been started.

    Args:
        release: the program.
        upgrade_from: the setting's value; a value that pins wins over everything else.
        remembered_version: the version last agreed, from the state directory of a native member.
            Versions that cannot probe are forgotten, or a pin would outlive its bounce. A native
            one stands for Kafka's newest, which every modern leader reads.
        start_version: "latest" starts a native member at its latest native version, as KIP-268
            has it, which ends a JVM leader beside a member that writes 1 or 2. None starts at
            Kafka's newest, or at the remembered one.

    Raises:
        ReleaseError: the release does not know ``upgrade_from``, remembers nothing, or
            ``start_version`` is no such thing.
    """
    if start_version not in (None, "latest"):
        raise ReleaseError(
            f"start_version={start_version!r} is unknown; set 'latest' or leave it out"
        )
    if remembered_version is not None and not release.is_native:
        raise ReleaseError(
            f"release {release.name} remembers no version over a restart; leave remembered_version"
            " out, or start a native member"
        )
    row = release.started_with(upgrade_from)
    pinned = row is not None and row.pinned_version is not None
    used_version = release.pinned_version(upgrade_from)
    if not pinned and start_version == "latest":
        used_version = release.latest_native_version or used_version
    elif not pinned and remembered_version is not None:
        known = greatest_known_version(release.known_versions, at_most=remembered_version)
        if known is not None and known >= EARLIEST_PROBEABLE_VERSION:
            used_version = known
    return MemberState(
        release_name=release.name,
        model=release.member_model,
        known_versions=release.known_versions,
        used_version=used_version,
        upgrade_from=upgrade_from,
        native_versions=release.native_versions,
        pinned=pinned,
    )


def subscription_version(state: MemberState) -> SubscriptionVersion | Refuse:
    """Return the two numbers that the member writes next, or why it writes nothing any more.

    A member whose used version is above its own latest cannot encode it: the end of KAFKA-8649.
    """
    if state.refusal is not None:
        return state.refusal
    if state.used_version in state.native_versions:
        latest = max(state.native_versions)
        return SubscriptionVersion(used=state.used_version, latest_supported=latest, native=latest)
    if state.used_version not in state.known_versions:
        return Refuse(
            rule="cannot write",
            why=f"release {state.release_name} was led to version {state.used_version} and writes"
            f" up to {state.latest_version} (KAFKA-8649); upgrade this member, or roll the leader"
            " to a release that says the lowest supported version",
        )
    probes = state.used_version >= EARLIEST_PROBEABLE_VERSION
    return SubscriptionVersion(
        used=state.used_version,
        latest_supported=state.latest_version if probes else UNKNOWN_VERSION,
        native=max(state.native_versions, default=None),
        pinned=state.pinned and bool(state.native_versions),
    )


def member_step(state: MemberState, event: Event) -> tuple[MemberState, tuple[Command, ...]]:
    """Take one event and return the new state with the commands to carry out, in order.

    Nothing raises for what a leader may write: a member that cannot go on says ``Refuse`` and
    stays refused. Every answer yields at least one command, so that each has its rule.
    """
    if state.refusal is not None:
        return state, ()
    match event:
        case AssignmentReceived():
            return _assignment_received(replace(state, rebalancing=False), event)
        case RebalanceStarted():
            return replace(state, rebalancing=True), ()
        case TimePassed(now_ms=now_ms):
            return _time_passed(state, now_ms)
        case _:
            assert_never(event)


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
    rule = first_rule(state.model, numbers)
    version = rule.speaks(numbers)
    why = rule.why.format(
        used=numbers.used,
        received=numbers.received,
        common=numbers.common,
        error_code=numbers.error_code,
        latest=numbers.latest,
        offered=numbers.offered,
        told=numbers.told,
        told_to_read=numbers.told_to_read,
    )
    match rule.action:
        case Action.REFUSE:
            refusal = Refuse(rule=rule.name, why=why)
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
                why="this release leaves the tasks of a probing answer alone (KAFKA-8972)",
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
            assert_never(rule.action)


def _report_error(
    state: MemberState, code: int, *, rule: str, why: str
) -> tuple[MemberState, tuple[Command, ...]]:
    """Tell the application; a Kafka member ends with it, unless the code only informs."""
    report = ReportError(code=code, rule=rule, why=why)
    if code == INFORMATIVE_ERROR or state.model in SURVIVES_ERRORS:
        return state, (report,)
    refusal = Refuse(
        rule="error ends the member",
        why=f"release {state.release_name} stops at error {code}"
        f" ({ERROR_NAMES.get(code, 'unknown')}); mend the cause and restart the member",
    )
    return replace(state, refusal=refusal), (report, refusal)


def _follow_up(
    state: MemberState, event: AssignmentReceived
) -> tuple[MemberState, tuple[Command, ...]]:
    """Decide about the next rebalance, for models that have follow-ups at all."""
    if state.model not in HAS_FOLLOWUPS:
        return state, ()
    rule = next(rule for rule in FOLLOWUP_RULES if rule.holds(event))
    at_ms = rule.at_ms(event)
    why = rule.why.format(at_ms=at_ms)
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
