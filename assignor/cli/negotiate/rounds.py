"""The groups that ``assignor negotiate`` plays with: members from their text, round by round.

A Kafka member is two numbers, ``10/11``. A member of ours in a version of Kafka's adds what its
trailer says, ``11/11+101``; one in a native version is two numbers again, ``101/102``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probing import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    Answer,
    AssignmentReceived,
    Command,
    KeepVersion,
    LeaderDecision,
    MemberModel,
    MemberState,
    MemberVersions,
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
    """The list of members cannot be played; one sentence says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One member in one round: what it wrote, what it got, what it does next.

    Attributes:
        member: its name.
        used, supported: the numbers that it wrote.
        native: the latest native version that it reads, None for a Kafka member.
        answer: what the leader sent.
        action: keep, rejoin, stop, or "write next time".
        next_version: what it writes from now on, None when it stops.
        rule, why: the row that decided and its sentence.
    """

    member: str
    used: int
    supported: int
    native: int | None
    answer: Answer
    action: str
    next_version: int | None
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One rebalance, and the members as they are after it."""

    decision: LeaderDecision
    lines: tuple[Line, ...]
    states: States

    @property
    def rejoining(self) -> tuple[str, ...]:
        """Names of the members that start the next rebalance."""
        return tuple(line.member for line in self.lines if line.action == "rejoin")

    @property
    def failed(self) -> bool:
        """Whether the leader or a member died."""
        dead = any(state.refusal is not None for _, state in self.states)
        stopped = any(line.action == "stop" for line in self.lines)
        return self.decision.refusal is not None or dead or stopped

    @property
    def settled(self) -> bool:
        """Whether everybody goes on and nobody rejoins."""
        return not self.failed and not self.rejoining

    @property
    def has_natives(self) -> bool:
        """Whether a member of ours is in the group."""
        return any(line.native is not None for line in self.lines)


def parse_members(text: str) -> States:
    """Return the members that ``--members`` lists, with their names.

    Raises:
        BadMembers: an entry is not of the form, or its numbers contradict each other.
    """
    states: dict[str, MemberState] = {}
    for number, part in enumerate(text.split(","), start=1):
        match = _MEMBER.fullmatch(part.strip())
        if match is None:
            raise BadMembers(
                f"member {number} is {part.strip()[:40]!r}; write used/supported, as in 10/11,"
                " or name:used/supported, with +101 behind it for a trailer"
            )
        name, used, supported = match[1] or f"m{number}", int(match[2]), int(match[3])
        trailer = int(match[4]) if match[4] else None
        if name in states:
            raise BadMembers(f"two members are called {name}; give each its own name")
        if used < 1 or max(supported, trailer or 0) > _VERSION_MAX:
            raise BadMembers(
                f"member {name} has versions {used}/{supported}; versions go from 1 to"
                f" {_VERSION_MAX}"
            )
        if used > supported:
            raise BadMembers(
                f"member {name} writes version {used} and supports {supported}; a member writes"
                " nothing above its latest supported version"
            )
        if trailer is None and used < EARLIEST_NATIVE_VERSION:
            states[name] = _kafka_member(used=used, supported=supported)
        else:
            states[name] = _native_member(name, used=used, supported=supported, trailer=trailer)
    return tuple(states.items())


def _kafka_member(*, used: int, supported: int) -> MemberState:
    """Return a member by Kafka's current rule; below version 3 nobody probes."""
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
    """Return a member of ours; one that writes 1 or 2 does so by its ``upgrade.from``."""
    if trailer is None:
        latest = supported
    elif trailer < EARLIEST_NATIVE_VERSION or supported > _NEWEST_OF_KAFKA:
        raise BadMembers(
            f"member {name} has a trailer of version {trailer} behind {used}/{supported}; native"
            f" versions start at {EARLIEST_NATIVE_VERSION}, and a trailer stands behind versions up"
            f" to {_NEWEST_OF_KAFKA}"
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


def play(release: Release, states: States, *, rounds: int, level: int | None) -> list[Round]:
    """Alternate leader and members until settled, dead, or ``rounds`` are over.

    Args:
        release: the leader's; it is no member of the group.
        states: the members, in the order in which they are shown.
        rounds: at most this many rebalances, at least one.
        level: the finalized level of the protocol, None while nothing is finalized.
    """
    played: list[Round] = []
    while len(played) < rounds:
        round_ = _rebalance(release, states, level=level)
        played.append(round_)
        states = round_.states
        if round_.failed or round_.settled:
            break
    return played


def _rebalance(release: Release, states: States, *, level: int | None) -> Round:
    written = {name: _written(state) for name, state in states}
    decision = decide_answers(
        release,
        [_as_seen(release, name, written[name]) for name, _ in states],
        level=level,
    )
    if decision.refusal is not None:
        return Round(decision=decision, lines=(), states=states)
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
                native=answer.native,
            ),
        )
        lines.append(_line(written[name], answer, commands))
        after.append((name, state))
    return Round(decision=decision, lines=tuple(lines), states=tuple(after))


def _written(state: MemberState) -> SubscriptionVersion:
    """Return the numbers that the member writes; a Kafka member shows what it supports at 2 too."""
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


def _line(written: SubscriptionVersion, answer: Answer, commands: Sequence[Command]) -> Line:
    """Return one member's line; the command that decides is the last one about versions."""
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
