"""The simulated groups of ``assignor negotiate``: parsing of members, and one round after another.

A Kafka member is a pair of used and latest supported version, ``10/11``. A native member that
writes a Kafka version adds the version in its trailer, ``11/11+101``; one that writes a native
version is a pair again, ``101/102``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probing import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    AnswerDecision,
    AssignmentReceived,
    Command,
    KeepVersion,
    LeaderDecision,
    MemberModel,
    MemberState,
    MemberVersions,
    NativeAnswer,
    Refuse,
    RejoinNow,
    Release,
    SubscriptionVersion,
    WriteNextTime,
    decide_answers,
    find_release,
    member_step,
    subscription_version,
)

_VERSION_MAX = 2**31 - 1
_MEMBER = re.compile(r"(?:([^:/,\s]{1,60}):)?(\d{1,10})/(\d{1,10})(?:\+(\d{1,10}))?", re.ASCII)
_NEWEST_OF_KAFKA = find_release("native").latest_version

States = tuple[tuple[str, MemberState], ...]


class BadMembers(ValueError):
    """The list of members is invalid; the message says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One member in one round: its subscription, the leader's answer, and its next action.

    Attributes:
        member: name of the member.
        used, supported: used and latest supported version in its subscription.
        native: latest native version that it reads; None for a Kafka member.
        answer: the leader's answer.
        action: keep, rejoin, stop, or "write next time".
        next_version: the version that it writes next; None when it stops.
        rule, why: the decision table's row and its sentence.
    """

    member: str
    used: int
    supported: int
    native: int | None
    answer: AnswerDecision
    action: str
    next_version: int | None
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationRound:
    """One rebalance, and the members' states after it."""

    decision: LeaderDecision
    lines: tuple[Line, ...]
    states: States

    @property
    def rejoining(self) -> tuple[str, ...]:
        """Names of the members that rejoin and so start the next rebalance."""
        return tuple(line.member for line in self.lines if line.action == "rejoin")

    @property
    def failed(self) -> bool:
        """Whether the leader or a member failed."""
        dead = any(state.refusal is not None for _, state in self.states)
        stopped = any(line.action == "stop" for line in self.lines)
        return self.decision.ends or dead or stopped

    @property
    def settled(self) -> bool:
        """Whether no member failed and none rejoins."""
        return not self.failed and not self.rejoining

    @property
    def has_natives(self) -> bool:
        """Whether the group has a native member."""
        return any(line.native is not None for line in self.lines)


def parse_members(text: str) -> States:
    """Return the members that ``--members`` lists, with their names.

    Raises:
        BadMembers: an entry is malformed, or its versions contradict each other.
    """
    states: dict[str, MemberState] = {}
    for number, part in enumerate(text.split(","), start=1):
        match = _MEMBER.fullmatch(part.strip())
        if match is None:
            raise BadMembers(
                f"member {number} is {part.strip()[:40]!r}; write used/supported, such as 10/11,"
                " or name:10/11; append +101 for a trailer"
            )
        name, used, supported = match[1] or f"m{number}", int(match[2]), int(match[3])
        trailer = int(match[4]) if match[4] else None
        if name in states:
            raise BadMembers(f"two members have the name {name}; names must be unique")
        if used < 1 or max(supported, trailer or 0) > _VERSION_MAX:
            raise BadMembers(
                f"member {name} has versions {used}/{supported}; versions go from 1 to"
                f" {_VERSION_MAX}"
            )
        if used > supported:
            raise BadMembers(
                f"member {name} writes version {used} but supports only {supported}; the used"
                " version must not exceed the latest supported version"
            )
        if trailer is None and used < EARLIEST_NATIVE_VERSION:
            states[name] = _kafka_member(used=used, supported=supported)
        else:
            states[name] = _native_member(name, used=used, supported=supported, trailer=trailer)
    return tuple(states.items())


def _kafka_member(*, used: int, supported: int) -> MemberState:
    """Return a member that follows Kafka's current rule; below version 3 it does not probe."""
    probes = supported >= EARLIEST_PROBEABLE_VERSION
    newest = find_release("native").known_versions
    known = {version for version in newest if version <= supported} | {used, supported}
    return MemberState(
        release_name=f"with version {supported}",
        model=MemberModel.FOLLOWUP_WAITS if probes else MemberModel.NO_PROBING,
        known_versions=tuple(sorted(known)),
        used_version=used,
    )


def _native_member(name: str, *, used: int, supported: int, trailer: int | None) -> MemberState:
    """Return a native member; one that writes version 1 or 2 is pinned by ``upgrade.from``."""
    if trailer is None:
        latest = supported
    elif trailer < EARLIEST_NATIVE_VERSION or supported > _NEWEST_OF_KAFKA:
        raise BadMembers(
            f"member {name} is {used}/{supported}+{trailer}; a trailer has a native version"
            f" ({EARLIEST_NATIVE_VERSION} or above) and follows versions up to {_NEWEST_OF_KAFKA}"
        )
    else:
        latest = trailer
    native = {EARLIEST_NATIVE_VERSION, latest} | {used} - set(range(EARLIEST_NATIVE_VERSION))
    highest = min(supported, _NEWEST_OF_KAFKA)
    known = find_release("native").known_versions
    return MemberState(
        release_name=f"with native version {latest}",
        model=MemberModel.NATIVE,
        known_versions=tuple(version for version in known if version <= highest),
        native_versions=tuple(sorted(native)),
        used_version=used,
        pinned=used < EARLIEST_PROBEABLE_VERSION,
    )


def play(
    release: Release, states: States, *, rounds: int, level: int | None
) -> list[NegotiationRound]:
    """Simulate rebalances until the group settles or fails; return one value per round.

    Args:
        release: the leader's release; the leader is not one of the members.
        states: the members, in the order of the output.
        rounds: most rebalances to simulate, at least 1.
        level: the finalized level of the assignment protocol; None: nothing is finalized.
    """
    played: list[NegotiationRound] = []
    while len(played) < rounds:
        round_ = _rebalance(release, states, level=level)
        played.append(round_)
        states = round_.states
        if round_.failed or round_.settled:
            break
    return played


def _rebalance(release: Release, states: States, *, level: int | None) -> NegotiationRound:
    written = {name: _written(state) for name, state in states}
    decision = decide_answers(
        release,
        [_as_seen(release, name, written[name]) for name, _ in states],
        level=level,
    )
    if decision.ends:
        return NegotiationRound(decision=decision, lines=(), states=states)
    answers = {answer.member_id: answer for answer in decision.answers}
    lines, after = [], []
    for name, before in states:
        answer = answers[name]
        state, commands = member_step(
            before,
            AssignmentReceived(
                received_version=answer.version,
                commonly_supported_version=answer.commonly_supported_version,
                error_code=decision.error_code,
                native=NativeAnswer(
                    next_version=answer.next_version, subscription_read=answer.subscription_read
                )
                if answer.is_native
                else None,
            ),
        )
        lines.append(_line(written[name], answer, commands))
        after.append((name, state))
    return NegotiationRound(decision=decision, lines=tuple(lines), states=tuple(after))


def _written(state: MemberState) -> SubscriptionVersion:
    """Return the versions in the member's subscription; in version 2 also the supported one."""
    numbers = subscription_version(state)
    if isinstance(numbers, Refuse) or numbers.native is None:
        return SubscriptionVersion(used=state.used_version, latest_supported=state.latest_version)
    return numbers


def _as_seen(release: Release, name: str, written: SubscriptionVersion) -> MemberVersions:
    return MemberVersions(
        member_id=name,
        used_version=written.used,
        latest_supported_version=written.latest_supported,
        native_version=written.native,
        readable=written.native is None or release.reads(written.used),
        pinned=written.pinned,
    )


def _line(
    written: SubscriptionVersion, answer: AnswerDecision, commands: Sequence[Command]
) -> Line:
    """Return one member's line; its last command about versions decides its action."""
    deciding = [
        c for c in commands if isinstance(c, KeepVersion | RejoinNow | Refuse | WriteNextTime)
    ]
    match deciding[-1] if deciding else commands[-1]:
        case Refuse() as decided:
            action, version = "stop", None
        case RejoinNow() as decided:
            action, version = "rejoin", decided.used_version
        case WriteNextTime() as decided:
            action, version = "write next time", decided.used_version
        case decided:
            action, version = "keep", written.used
    return Line(
        member=answer.member_id,
        used=written.used,
        supported=written.latest_supported,
        native=written.native,
        answer=answer,
        action=action,
        next_version=version,
        rule=decided.rule,
        why=decided.why,
    )
