"""Decision table of a native leader: the version of the answer to each native member.

JVM members share one version and one second number. Native members neither affect nor follow these:
each is answered in the version that it wrote, which it can read. The first row that holds decides.
"""

from collections.abc import Callable
from typing import Final

from probing.leader import next_version
from probing.leader.answers import AnswerDecision, Content, GroupVersions, MemberVersions
from probing.leader.next_version import NextVersionNumbers
from probing.releases import Release
from probing.rules import Rule, Rules, always, first
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    UNKNOWN_VERSION,
)

NATIVE_ANSWER_RULES: Final[Rules[NextVersionNumbers, Callable[[NextVersionNumbers], int]]] = (
    Rule(
        name="native body that cannot be read",
        holds=lambda n: not n.readable,
        says=lambda _: EARLIEST_NATIVE_VERSION,
        why="wrote version {used}, whose body this leader cannot read; answered in {version}, which"
        " every native member reads, and placed without its state until it writes a lower version",
    ),
    Rule(
        name="native member in the version it wrote",
        holds=lambda n: n.used in n.known_versions,
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
    """Return the inputs of both tables for a member; None: any member without a pin."""
    return NextVersionNumbers(
        used=0 if member is None else member.used_version,
        readable=member is None or member.readable,
        pinned_version=member.used_version if member is not None and member.pinned else None,
        jvm_lowest_used=group.lowest_used if group.members else None,
        jvm_second_number=group.lowest_supported,
        lowest_native=group.lowest_native,
        level=group.level,
        known_versions=group.release.readable_versions,
    )


def decide_native_answer(group: GroupVersions, member: MemberVersions) -> AnswerDecision:
    """Return the answer of a native leader to one native member."""
    numbers = next_version_numbers(group, member)
    rule = first(NATIVE_ANSWER_RULES, numbers)
    version = rule.says(numbers)
    next_rule = first(next_version.NEXT_VERSION_RULES, numbers)
    following = next_rule.says(numbers)
    next_why = next_rule.sentence(numbers, next_version=following)
    return AnswerDecision(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=_second_number(group.release, version, numbers.lowest_native),
        content=Content.NORMAL,
        rule=rule.name,
        why=f"{rule.sentence(numbers, version=version)}. {next_rule.name}: {next_why}",
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
