"""Version probing of the leader: the answer to every member of the group.

This module turns the subscriptions into the inputs of the table in ``answers.py``, and the row that
decides into one answer per member. No subscription raises: a leader that ends is an outcome, with a
sentence that says what to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from probing.leader import answers, next_version
from probing.leader.answers import (
    OWN_LATEST,
    AnswerDecision,
    Content,
    GroupVersions,
    LeaderAnswers,
    LeaderOutcome,
    MemberVersions,
)
from probing.leader.native_answers import decide_native_answer, next_version_numbers
from probing.releases import Release
from probing.rules import Rule, first
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    UNKNOWN_VERSION,
    greatest_known_version,
)

ASSIGNMENT_ERROR: Final = 3
"""Error code of an answer that stops every Kafka member that can read it."""

_Row = Rule[GroupVersions, LeaderAnswers]
_NAMES_MAX: Final = 8
_CHECKS_SUPPORTED_SINCE: Final = (2, 5)
"""Kafka's decoder refuses a supported version below the used one from this series on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderDecision:
    """What the leader does with the group.

    Attributes:
        version: version of the answers to JVM members; the lowest version of all answers if every
            member is native; 0 if the leader ends.
        commonly_supported_version: the second number of these answers; unknown (-1) below
            version 3.
        answers: one for each member, in order of member id; empty if the leader ends.
        future_members: members that wrote a version above the ones that the leader reads.
        quarantined_members: members whose subscription is unreadable or contradictory.
        lowest_supported_version: over the readable members; unknown (-1) if one does not carry it.
        error_code: 0, or 3 if every member gets an error.
        version_probing: a future member was answered, so another rebalance follows.
        ends: whether the leader ends, as one of its release does.
        rule, why: the row that decided and its sentence.
        next_version: version that native members without a pin write next; 0 if there are none, or
            if the leader is a JVM.
        next_version_rule: the row that decided it, or "".
    """

    version: int
    commonly_supported_version: int
    answers: tuple[AnswerDecision, ...]
    future_members: tuple[str, ...]
    quarantined_members: tuple[str, ...]
    lowest_supported_version: int
    error_code: int
    version_probing: bool
    ends: bool
    rule: str
    why: str
    next_version: int = 0
    next_version_rule: str = ""


def decide_answers(
    release: Release, members: Sequence[MemberVersions], *, level: int | None = None
) -> LeaderDecision:
    """Return how a leader of ``release`` answers the group.

    Args:
        release: the leader's release; its model selects the rows.
        members: every member's versions, including the leader's own, in any order.
        level: the finalized level of the protocol, an upper bound for native members; None while
            nothing is finalized. JVM leaders ignore it.

    Returns:
        The decision: answers in order of member id, or that the leader ends, and why.
    """
    group = _group_versions(release, members, level=level)
    model = release.leader_model
    rule = first((rule for rule in answers.LEADER_RULES if model in rule.models), group)
    says, why = rule.says, _sentence(rule, group)
    if says.outcome is LeaderOutcome.DIES:
        return _decision(group, rule, why, (), version=0, common=UNKNOWN_VERSION)
    natives = [decide_native_answer(group, member) for member in group.natives]
    if says.outcome is LeaderOutcome.ERROR_TO_ALL:
        # Kafka writes errors in the leader's latest version, which older members cannot read.
        version = common = group.latest
    elif natives and not group.members:
        lowest = min(natives, key=lambda answer: answer.version)
        version, common = lowest.version, lowest.commonly_supported_version
    else:
        version = group.lowest_used if says.fixed_version is None else says.fixed_version
        common = group.latest if says.second_number == OWN_LATEST else group.lowest_supported
        common = _on_the_wire(version, common)
    replies = [
        *natives,
        *(_answer(group, rule, why, m, version=version, common=common) for m in group.members),
        *(_quarantined_answer(group, m, version=version, common=common) for m in group.quarantined),
    ]
    return _decision(group, rule, why, replies, version=version, common=common)


def _on_the_wire(version: int, common: int) -> int:
    """Return the second number as the reader sees it: versions 1 and 2 do not carry it."""
    return common if version >= EARLIEST_PROBEABLE_VERSION else UNKNOWN_VERSION


def _group_versions(
    release: Release, members: Sequence[MemberVersions], *, level: int | None
) -> GroupVersions:
    quarantined, natives, counted = [], [], []
    for member in sorted(members, key=lambda member: member.member_id):
        if _is_quarantined(release, member):
            quarantined.append(member)
        elif release.is_native and member.native_version is not None:
            natives.append(member)
        else:  # a JVM leader does not see trailers: to it, every member is a JVM member
            counted.append(member)
    latest = release.latest_version
    lowest_used = min((latest, *(m.used_version for m in counted)))
    return GroupVersions(
        release=release,
        members=tuple(counted),
        natives=tuple(natives),
        future=tuple(m for m in counted if m.used_version > latest),
        quarantined=tuple(quarantined),
        lowest_used=greatest_known_version(release.known_versions, at_most=lowest_used)
        or lowest_used,
        lowest_supported=min((latest, *(m.supported_as_seen for m in counted))),
        lowest_native=min(
            (
                release.latest_native_version or EARLIEST_NATIVE_VERSION,
                *(m.native_version for m in natives if m.native_version is not None),
            )
        ),
        level=level,
    )


def _is_quarantined(release: Release, member: MemberVersions) -> bool:
    """Tell whether the member's subscription is unreadable, or its two versions are impossible."""
    checks = release.is_native or release.order >= _CHECKS_SUPPORTED_SINCE
    is_impossible = member.used_version < 1 or (checks and member.contradicts_itself)
    return member.quarantined or is_impossible


def _names(members: Sequence[MemberVersions]) -> str:
    """Return the member ids for a sentence, at most eight and the number of the others."""
    more = len(members) - _NAMES_MAX
    names = ", ".join(member.member_id for member in members[:_NAMES_MAX])
    return f"{names} and {more} more" if more > 0 else names


def _sentence(rule: _Row, group: GroupVersions) -> str:
    """Fill in the row's sentence."""
    why = rule.sentence(
        group,
        future=_names(group.future),
        future_version=max((m.used_version for m in group.future), default=UNKNOWN_VERSION),
        quarantined=_names(group.quarantined),
        unknown_version=max(group.undecodable, default=UNKNOWN_VERSION),
        series=group.release.series,
    )
    if not (group.natives and group.members):
        return why
    return f"{why}; native members ({_names(group.natives)}) get the versions that they wrote"


def _decision(
    group: GroupVersions,
    rule: _Row,
    why: str,
    answers: Sequence[AnswerDecision],
    *,
    version: int,
    common: int,
) -> LeaderDecision:
    dies = rule.says.outcome is LeaderOutcome.DIES
    error = rule.says.outcome is LeaderOutcome.ERROR_TO_ALL
    unread = [member for member in group.natives if not member.readable]
    numbers = next_version_numbers(group)
    next_rule = first(next_version.NEXT_VERSION_RULES, numbers)
    return LeaderDecision(
        version=version,
        commonly_supported_version=common,
        answers=tuple(sorted(answers, key=lambda answer: answer.member_id)),
        future_members=tuple(sorted(member.member_id for member in (*group.future, *unread))),
        quarantined_members=tuple(member.member_id for member in group.quarantined),
        lowest_supported_version=group.lowest_supported,
        error_code=ASSIGNMENT_ERROR if error else 0,
        version_probing=bool(group.future or unread) and not (dies or error),
        ends=dies,
        rule=rule.name,
        why=why,
        next_version=next_rule.says(numbers) if group.natives else 0,
        next_version_rule=next_rule.name if group.natives else "",
    )


def _answer(
    group: GroupVersions,
    rule: _Row,
    why: str,
    member: MemberVersions,
    *,
    version: int,
    common: int,
) -> AnswerDecision:
    """Return the answer to one member under the row that decided."""
    content = rule.says.others_get
    if rule.says.outcome is LeaderOutcome.ERROR_TO_ALL:
        content = Content.ERROR
    elif member.used_version > group.latest:
        content = rule.says.future_get
        if rule.says.future_numbers == OWN_LATEST:
            version = common = group.latest
    return AnswerDecision(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=common,
        content=content,
        rule=rule.name,
        why=why,
    )


def _quarantined_answer(
    group: GroupVersions, member: MemberVersions, *, version: int, common: int
) -> AnswerDecision:
    """Return the answer to an unreadable or contradictory subscription, in a Kafka version.

    If its version could be read, the answer is not above it.
    """
    written = (
        member.used_version if not member.quarantined and member.used_version >= 1 else version
    )
    version, common = min(version, written, group.latest), min(common, group.latest)
    return AnswerDecision(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=_on_the_wire(version, common),
        content=Content.PREVIOUS,
        rule="quarantined",
        why=f"the subscription of {member.member_id} is unreadable: the member keeps its tasks",
    )
