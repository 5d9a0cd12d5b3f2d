"""Behaviours of leaders and members in all releases, as enums.

A model is one behaviour; the release table assigns models to releases. Releases differ in model
only if another member can notice: in the meaning of an answer's second number, in who gets tasks
while a future member is in the group, and in what ends a leader or member. Source: the code of each
release.
"""

from enum import StrEnum


class LeaderModel(StrEnum):
    """How a leader answers the versions in its group."""

    VERSION_1_ONLY = "version 1 only"
    """0.10.0: reads and writes version 1; any other subscription ends it."""

    ALWAYS_VERSION_2 = "always version 2"
    """0.10.1 to 1.1 without KAFKA-6054: reads 1 and 2, answers all members in 2."""

    LOWEST_USED = "lowest used"
    """0.10.2.2, 0.11.0.3, 1.0.2, 1.1.1: reads 1 and 2, answers in the lowest used version."""

    EMPTY_AND_OWN = "empty, own number"
    """2.0.x, 2.1.x, 2.2.0-1, 2.3.0: empty answers to future members; second number: its latest."""

    EMPTY_AND_LOWEST = "empty, lowest number"
    """2.2.2 and 2.3.1: empty answers too, but the second number is the lowest supported version."""

    SEPARATE_TASKS = "separate tasks"
    """2.4 and 2.5: future members get tasks without an owner, the others keep their tasks."""

    NORMAL_OR_DEAD = "normal, or dead"
    """2.6: a normal assignment for all; a future member beside version 1 or 2 ends the leader."""

    NORMAL_OR_ERROR = "normal, or error"
    """2.7 and later: a normal assignment for all, or error 3 in the cases that end 2.6."""

    NATIVE = "native"
    """Native: as 2.7 over the JVM members, but versions 1 and 2 beside a future member get normal
    answers, and an unreadable subscription quarantines its member instead of ending the leader.
    Native members are answered in the version that they wrote, with the version to write next."""

    KIP_TEXT = "text of KIP-268"
    """Described in the KIP, but in no release: see ``MemberModel.KIP_TEXT``."""


class MemberModel(StrEnum):
    """How a member handles the two version numbers of an answer."""

    NO_PROBING = "no probing"
    """Before 2.0: ends if it cannot read the answer; never changes its version."""

    UNGUARDED = "unguarded"
    """2.0.x, 2.1.x, 2.2.0-1, 2.3.0: copies the second number, even one that it cannot write
    (KAFKA-8649); raises its version only for the next rebalance; drops the tasks of a probing
    answer."""

    GUARDED = "guarded"
    """2.2.2 and 2.3.1: refuses a number above its latest; still drops the tasks (KAFKA-8972)."""

    TASKS_KEPT = "tasks kept"
    """2.4 and 2.5: version change and tasks are independent."""

    FOLLOWUP = "follow-up"
    """2.6 to 3.3.1: one schedule for all follow-ups, which may fire during a rebalance
    (KAFKA-14382)."""

    FOLLOWUP_WAITS = "follow-up waits"
    """3.3.2 and later: as before, but a follow-up waits until no rebalance is running."""

    NATIVE = "native"
    """Native: as 3.3.2, but a second number above the known versions is replaced by the greatest
    known one, and an error answer is reported instead of ending the member. The version that a
    native leader names is written at the next rebalance, without a rejoin."""

    KIP_TEXT = "text of KIP-268"
    """The KIP's text: members raise their version at the next rebalance; the leader alone starts
    the last rebalance."""
