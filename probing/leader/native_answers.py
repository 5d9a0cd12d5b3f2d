"""Decision table of a native leader: the version of the answer to each native member.

JVM members share one version and one second number. Native members neither affect nor follow these:
each is answered in the version that it wrote, which it can read. The first row that holds decides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from probing.leader.next_version import NextVersionNumbers, next_version_for, why_next_version
from probing.leader.rules import AnswerDecision, Content, GroupVersions, MemberVersions
from probing.member import NativeAnswer
from probing.releases import Release
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    UNKNOWN_VERSION,
    greatest_known_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeAnswerRule:
    """One row: its condition, and the version of the answer. ``why`` is a format string."""

    name: str
    holds: Callable[[Release, MemberVersions], bool]
    version: Callable[[Release, MemberVersions], int]
    why: str


def _nearest_version(release: Release, member: MemberVersions) -> int:
    """Return the leader's greatest version that is at most the one that the member wrote."""
    nearest = greatest_known_version(release.readable_versions, at_most=member.used_version)
    return nearest or EARLIEST_NATIVE_VERSION


NATIVE_ANSWER_RULES: Final = (
    NativeAnswerRule(
        name="native body that cannot be read",
        holds=lambda _, member: not member.readable,
        version=lambda *_: EARLIEST_NATIVE_VERSION,
        why="wrote version {used}, whose body this leader cannot read; answered in {version}, which"
        " every native member reads, and placed without its state until it writes a lower version",
    ),
    NativeAnswerRule(
        name="native member in the version it wrote",
        holds=lambda release, member: member.used_version in release.readable_versions,
        version=lambda _, member: member.used_version,
        why="answered in version {version}, which it wrote",
    ),
    NativeAnswerRule(
        name="native member above the leader, and readable",
        holds=lambda *_: True,
        version=_nearest_version,
        why="wrote version {used}, which this leader reads but does not write; answered in"
        " {version}",
    ),
)


def next_version_numbers(
    group: GroupVersions, member: MemberVersions | None = None
) -> NextVersionNumbers:
    """Return the inputs of ``NEXT_VERSION_RULES`` for a member; None: any member without a pin."""
    return NextVersionNumbers(
        pinned_version=member.used_version if member is not None and member.pinned else None,
        jvm_lowest_used=group.lowest_used if group.members else None,
        jvm_second_number=group.lowest_supported,
        lowest_native=group.lowest_native,
        level=group.level,
        known_versions=group.release.readable_versions,
    )


def decide_native_answer(group: GroupVersions, member: MemberVersions) -> AnswerDecision:
    """Return the answer of a native leader to one native member."""
    release = group.release
    rule = next(rule for rule in NATIVE_ANSWER_RULES if rule.holds(release, member))
    version = rule.version(release, member)
    numbers = next_version_numbers(group, member)
    next_version, next_rule = next_version_for(numbers)
    sentence = rule.why.format(used=member.used_version, version=version)
    return AnswerDecision(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=_second_number(release, version, numbers.lowest_native),
        content=Content.NORMAL,
        rule=rule.name,
        why=f"{sentence}. {next_rule.name}: {why_next_version(numbers, next_rule)}",
        native=NativeAnswer(next_version=next_version, subscription_read=member.readable),
    )


def _second_number(release: Release, version: int, lowest_native: int) -> int:
    """Return the second number of an answer: the version that all native members support.

    It is of the same kind (Kafka or native) as ``version`` and at least ``version``.
    """
    if version < EARLIEST_PROBEABLE_VERSION:
        return UNKNOWN_VERSION
    if version < EARLIEST_NATIVE_VERSION:
        return release.latest_version
    return max(version, lowest_native)
