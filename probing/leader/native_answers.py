"""Decision table of a native leader: the version of the answer to each native member.

JVM members share one version and one second number. Native members neither affect nor follow these:
each is answered in the version that it wrote, which it can read. The first row that holds decides.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from probing.leader import next_version
from probing.leader.answers import AnswerDecision, Content, GroupVersions, MemberVersions
from probing.leader.next_version import NextVersionNumbers
from probing.releases import Release
from probing.rules import Rule, Rules, always, first
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    UNKNOWN_VERSION,
    greatest_known_version,
)


class NativeNumbers(NamedTuple):
    """Inputs of a row: the leader's release, and what a native member wrote."""

    release: Release
    member: MemberVersions

    @property
    def used(self) -> int:
        """The version that the member wrote."""
        return self.member.used_version

    @property
    def nearest(self) -> int:
        """The leader's greatest version that is at most the one that the member wrote."""
        nearest = greatest_known_version(self.release.readable_versions, at_most=self.used)
        return nearest or EARLIEST_NATIVE_VERSION


NATIVE_ANSWER_RULES: Final[Rules[NativeNumbers, Callable[[NativeNumbers], int]]] = (
    Rule(
        name="native body that cannot be read",
        holds=lambda n: not n.member.readable,
        says=lambda _: EARLIEST_NATIVE_VERSION,
        why="wrote version {used}, whose body this leader cannot read; answered in {version}, which"
        " every native member reads, and placed without its state until it writes a lower version",
    ),
    Rule(
        name="native member in the version it wrote",
        holds=lambda n: n.used in n.release.readable_versions,
        says=lambda n: n.used,
        why="answered in version {version}, which it wrote",
    ),
    Rule(
        name="native member above the leader, and readable",
        holds=always,
        says=lambda n: n.nearest,
        why="wrote version {used}, which this leader reads but does not write; answered in"
        " {version}",
    ),
)
"""The version of the answer; sentences also have it, as ``version``."""


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
    written = NativeNumbers(group.release, member)
    rule = first(NATIVE_ANSWER_RULES, written)
    version = rule.says(written)
    numbers = next_version_numbers(group, member)
    next_rule = first(next_version.NEXT_VERSION_RULES, numbers)
    following = next_rule.says(numbers)
    next_why = next_rule.sentence(numbers, next_version=following)
    return AnswerDecision(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=_second_number(group.release, version, numbers.lowest_native),
        content=Content.NORMAL,
        rule=rule.name,
        why=f"{rule.sentence(written, version=version)}. {next_rule.name}: {next_why}",
        next_version=following,
        subscription_read=member.readable,
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
