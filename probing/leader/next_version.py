"""Decision table of a native leader: the version that each native member writes next.

Under a native leader no native member rejoins for a version: it is answered in the version that it
wrote, and the answer names the version for the next rebalance. The versions are chosen so that a
change of leader, even to a JVM, needs no extra rebalance. The first row that holds decides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from probing.rules import Rule, Rules, always
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    greatest_known_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVersionNumbers:
    """Inputs of a row of this table and of ``NATIVE_ANSWER_RULES``, for one native member.

    Attributes:
        pinned_version: the version pinned by the member's ``upgrade.from``, None without a pin.
        jvm_lowest_used: the lowest version that a JVM member wrote, None without JVM members.
        jvm_second_number: the second number of the answers to JVM members, at most Kafka's newest.
        lowest_native: the greatest native version that every native member reads.
        level: the finalized level of the protocol, None while nothing is finalized.
        known_versions: every version that the leader reads and writes.
        used: the version that the member wrote.
        readable: the leader can read the body of that version.
    """

    pinned_version: int | None
    jvm_lowest_used: int | None
    jvm_second_number: int
    lowest_native: int
    level: int | None
    known_versions: tuple[int, ...]
    used: int = 0
    readable: bool = True

    @property
    def nearest(self) -> int:
        """Return the leader's greatest version that is at most the one that the member wrote."""
        nearest = greatest_known_version(self.known_versions, at_most=self.used)
        return nearest or EARLIEST_NATIVE_VERSION

    @property
    def capped(self) -> int:
        """Return the greatest known version up to ``lowest_native`` and the finalized level.

        At least 3, the earliest probeable version: JVM leaders do not raise a member from below.
        """
        return self.below_level(self.lowest_native)

    def below_level(self, version: int) -> int:
        """Return the greatest known version up to this one and the finalized level, or 3."""
        most = version if self.level is None else min(version, self.level)
        known = greatest_known_version(self.known_versions, at_most=most)
        return max(known or 0, EARLIEST_PROBEABLE_VERSION)


NEXT_VERSION_RULES: Final[Rules[NextVersionNumbers, Callable[[NextVersionNumbers], int]]] = (
    Rule(
        name="pinned",
        holds=lambda n: n.pinned_version is not None,
        says=lambda n: n.pinned_version or 0,
        why="its upgrade.from pins version {pinned_version}; this does not limit other members",
    ),
    Rule(
        name="a JVM member writes 1 or 2",
        holds=lambda n: (
            n.jvm_lowest_used is not None and n.jvm_lowest_used < EARLIEST_PROBEABLE_VERSION
        ),
        says=lambda _: EARLIEST_PROBEABLE_VERSION,
        why="a JVM member writes version {jvm_lowest_used}; if it is pinned and leads, it ends the"
        " group at a version above its own latest, and {next_version} never is",
    ),
    Rule(
        name="as far as the JVM members go",
        holds=lambda n: n.jvm_lowest_used is not None,
        says=lambda n: (
            n.jvm_second_number if n.level is None else n.below_level(n.jvm_second_number)
        ),
        why="all JVM members support version {jvm_second_number}; with it, a JVM member can become"
        " leader without an extra rebalance (at most the finalized level)",
    ),
    Rule(
        name="natives only",
        holds=always,
        says=lambda n: n.capped,
        why="all members are native; {next_version} is the greatest version that all of them read,"
        " at most the finalized level",
    ),
)
"""The version to write next; sentences also have it, as ``next_version``."""
