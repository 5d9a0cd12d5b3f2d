"""How leaders and members behaved through history, as closed sets of names.

A model is one behaviour; the release table says which release has which. Only differences that
another member can notice make a model: what the second number of an answer means, who gets tasks
while a future member is in the group, and who dies of what. Read from the sources of the releases.
"""

from enum import StrEnum


class LeaderModel(StrEnum):
    """What a leader does with the versions that it finds in its group."""

    VERSION_1_ONLY = "version 1 only"
    """0.10.0: reads and writes version 1; any other subscription kills it."""

    ALWAYS_VERSION_2 = "always version 2"
    """0.10.1 to 1.1 without KAFKA-6054: reads 1 and 2, answers everybody in 2."""

    LOWEST_USED = "lowest used"
    """0.10.2.2, 0.11.0.3, 1.0.2, 1.1.1: reads 1 and 2, answers in the lowest used version."""

    EMPTY_AND_OWN = "empty, own number"
    """2.0.x, 2.1.x, 2.2.0-1, 2.3.0: empty answers to future members; second number its own."""

    EMPTY_AND_LOWEST = "empty, lowest number"
    """2.2.2 and 2.3.1: the same, but the second number is the lowest supported one."""

    SEPARATE_TASKS = "separate tasks"
    """2.4 and 2.5: future members get real tasks, the others keep what they had."""

    NORMAL_OR_DEAD = "normal, or dead"
    """2.6: a normal assignment for all; a future member beside version 1 or 2 kills the leader."""

    NORMAL_OR_ERROR = "normal, or error"
    """2.7 and later: a normal assignment for all, or error 3 where 2.6 died."""

    NATIVE = "native"
    """Ours: as 2.7 over the JVM members, but versions 1 and 2 beside a future member are answered,
    and bytes that cannot be read quarantine one member instead of ending the leader. Native members
    are answered one by one and told what to write next."""

    KIP_TEXT = "text of KIP-268"
    """What the KIP describes and no release ships: see ``MemberModel.KIP_TEXT``."""


class MemberModel(StrEnum):
    """What a member does with the two numbers of the answer that it gets."""

    NO_PROBING = "no probing"
    """Before 2.0: reads the answer or dies; never changes its version."""

    UNGUARDED = "unguarded"
    """2.0.x, 2.1.x, 2.2.0-1, 2.3.0: copies the second number, even one that it cannot write
    (KAFKA-8649); lifts itself only for the next rebalance; drops the tasks of a probing answer."""

    GUARDED = "guarded"
    """2.2.2 and 2.3.1: refuses a number above its latest; still drops the tasks (KAFKA-8972)."""

    TASKS_KEPT = "tasks kept"
    """2.4 and 2.5: version change and tasks are independent."""

    FOLLOWUP = "follow-up"
    """2.6 to 3.3.1: one schedule for all follow-ups, which may fire during a rebalance
    (KAFKA-14382)."""

    FOLLOWUP_WAITS = "follow-up waits"
    """3.3.2 and later: the same, and a follow-up waits until no rebalance is running."""

    NATIVE = "native"
    """Ours: as 3.3.2, but an impossible second number is cut down to what we know, and an error
    answer is reported instead of ending the member. A leader of ours is obeyed at the next
    rebalance, without a rejoin."""

    KIP_TEXT = "text of KIP-268"
    """The KIP's text: members lift themselves in passing; the leader alone starts the last
    rebalance."""
