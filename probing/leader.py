"""The leader's half of version probing: what every member of the group is answered.

``leader_rules`` holds the table; here the subscriptions become the numbers that its rows look at,
and the row that fired becomes one answer a member. Nothing raises for what a peer may write: a
leader that history lets die is an outcome, with the sentence that says what to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from probing.events import Refuse
from probing.leader_rules import (
    LEADER_RULES,
    OWN_LATEST,
    Content,
    GroupVersions,
    LeaderRule,
    MemberVersions,
    Verdict,
)
from probing.releases import Release
from probing.versions import EARLIEST_PROBEABLE_VERSION, UNKNOWN_VERSION, greatest_known_version

ASSIGNMENT_ERROR: Final = 3
"""The code of an answer that ends every Kafka member that can read it."""

_CHECKS_SUPPORTED_SINCE: Final = (2, 5)
"""Kafka's decoder refuses a supported version below the used one from this series on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one member gets: the version of its bytes, the second number, and what is in it."""

    member_id: str
    version: int
    commonly_supported_version: int
    content: Content
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderDecision:
    """What the leader does with the group.

    Attributes:
        version: what most answers are written in; 0 when the leader died.
        commonly_supported_version: their second number; unknown (-1) below version 3.
        answers: one for each member, in order of member id; none when the leader died.
        future_members: members whose used version is above what the leader reads.
        quarantined_members: members whose bytes the leader cannot read or believe.
        lowest_supported_version: over the members that can be read; unknown (-1) if one does
            not say.
        error_code: 0, or 3 when everybody gets an error.
        version_probing: a future member was answered, so a further rebalance will come.
        refusal: why the leader died, or None.
        rule, why: the row that fired and its sentence.
    """

    version: int
    commonly_supported_version: int
    answers: tuple[Answer, ...]
    future_members: tuple[str, ...]
    quarantined_members: tuple[str, ...]
    lowest_supported_version: int
    error_code: int
    version_probing: bool
    refusal: Refuse | None
    rule: str
    why: str


def decide_answers(release: Release, members: Sequence[MemberVersions]) -> LeaderDecision:
    """Return how a leader of ``release`` answers the group.

    Args:
        release: the leader's program; its model picks the rows.
        members: every member's versions, the leader's own among them, in any order.

    Returns:
        The decision: answers in order of member id, or the refusal of a leader that dies.
    """
    group = _group_versions(release, members)
    model = release.leader_model
    rule = next(rule for rule in LEADER_RULES if model in rule.models and rule.holds(group))
    why = _sentence(rule, group)
    if rule.verdict is Verdict.DIES:
        return _decision(group, rule, why, version=0, common=UNKNOWN_VERSION)
    if rule.verdict is Verdict.ERROR_TO_ALL:
        # Kafka writes errors in the leader's latest version, which older members cannot read.
        return _decision(group, rule, why, version=group.latest, common=group.latest)
    version = group.lowest_used if rule.fixed_version is None else rule.fixed_version
    common = group.latest if rule.second_number == OWN_LATEST else group.lowest_supported
    return _decision(group, rule, why, version=version, common=_on_the_wire(version, common))


def _on_the_wire(version: int, common: int) -> int:
    """Return the second number as the reader sees it: versions 1 and 2 have no room for it."""
    return common if version >= EARLIEST_PROBEABLE_VERSION else UNKNOWN_VERSION


def _group_versions(release: Release, members: Sequence[MemberVersions]) -> GroupVersions:
    everyone = tuple(sorted(members, key=lambda member: member.member_id))
    readable = tuple(m for m in everyone if not _is_quarantined(release, m))
    latest = release.latest_version
    lowest_used = min((latest, *(m.used_version for m in readable)))
    return GroupVersions(
        release=release,
        members=readable,
        future=tuple(m for m in readable if m.used_version > latest),
        quarantined=tuple(m for m in everyone if m not in readable),
        lowest_used=greatest_known_version(release.known_versions, at_most=lowest_used)
        or lowest_used,
        lowest_supported=min((latest, *(m.supported_as_seen for m in readable))),
    )


def _is_quarantined(release: Release, member: MemberVersions) -> bool:
    """Tell whether the leader cannot read the member's bytes, or cannot believe its numbers."""
    checks = release.is_native or release.order >= _CHECKS_SUPPORTED_SINCE
    nonsense = member.used_version < 1 or (checks and member.contradicts_itself)
    return member.quarantined or nonsense


def _names(members: Sequence[MemberVersions]) -> str:
    return ", ".join(member.member_id for member in members)


def _sentence(rule: LeaderRule, group: GroupVersions) -> str:
    """Fill in the row's sentence."""
    return rule.why.format(
        future=_names(group.future),
        future_version=max((m.used_version for m in group.future), default=UNKNOWN_VERSION),
        quarantined=_names(group.quarantined),
        unknown_version=max(group.undecodable, default=UNKNOWN_VERSION),
        series=group.release.series,
        latest=group.latest,
        lowest_used=group.lowest_used,
        lowest_supported=group.lowest_supported,
    )


def _decision(
    group: GroupVersions, rule: LeaderRule, why: str, *, version: int, common: int
) -> LeaderDecision:
    dies = rule.verdict is Verdict.DIES
    error = rule.verdict is Verdict.ERROR_TO_ALL
    everyone = sorted((*group.members, *group.quarantined), key=lambda member: member.member_id)
    return LeaderDecision(
        version=version,
        commonly_supported_version=common,
        answers=()
        if dies
        else tuple(
            _answer(group, rule, why, member, version=version, common=common) for member in everyone
        ),
        future_members=tuple(member.member_id for member in group.future),
        quarantined_members=tuple(member.member_id for member in group.quarantined),
        lowest_supported_version=group.lowest_supported,
        error_code=ASSIGNMENT_ERROR if error else 0,
        version_probing=bool(group.future) and not (dies or error),
        refusal=Refuse(rule=rule.name, why=why) if dies else None,
        rule=rule.name,
        why=why,
    )


def _answer(
    group: GroupVersions,
    rule: LeaderRule,
    why: str,
    member: MemberVersions,
    *,
    version: int,
    common: int,
) -> Answer:
    """Return one member's answer under the row that fired."""
    name = rule.name
    content = rule.others_get
    if member in group.quarantined:
        content, name = Content.PREVIOUS, "quarantined"
        why = f"the subscription of {member.member_id} cannot be read: it keeps what it owns"
    elif rule.verdict is Verdict.ERROR_TO_ALL:
        content = Content.ERROR
    elif member in group.future:
        content = rule.future_get
        if rule.future_numbers == OWN_LATEST:
            version = common = group.latest
    return Answer(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=common,
        content=content,
        rule=name,
        why=why,
    )
