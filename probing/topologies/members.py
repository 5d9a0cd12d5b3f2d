"""Decision tables: what a leader does with a member's topology, and a member with an answer.

The first row that holds decides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberNumbers:
    """Inputs of a row of `TOPOLOGY_MEMBER_RULES`: what the leader knows of a member's topology.

    Attributes:
        is_native: the member is of this project, and its native fields can be read.
        beside_jvm: a JVM member is in the group.
        is_group_topology: its fingerprint is the one that all members have to have beside JVM
            members.
        is_described: the leader knows what the member can run.
        was_asked: an answer asked it to describe its topology.
        missed: answers in a row that asked it, and that it did not take; 0: it took the last one.
        has_valid_version: its version of the topology is 1 to 2**31 - 1.
        is_admitted: what it can run does not contradict the topologies of other members.
    """

    is_native: bool
    beside_jvm: bool
    is_group_topology: bool
    is_described: bool
    was_asked: bool
    missed: int = 0
    has_valid_version: bool = True
    is_admitted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRule:
    """One row: its condition, what the leader does with the member, and the sentence.

    ``treatment`` is "carries" (gets what it can run), "jvm" (gets tasks of the group's topology),
    "ask" (is asked to describe its topology, and gets nothing until then) or "refuse".
    """

    name: str
    holds: Callable[[MemberNumbers], bool]
    treatment: str
    why: str


MOST_ASKED: Final = 3
"""Answers in a row that ask a member to describe its topology. Each costs a rebalance at most."""

_FIRST_BOUNCE = (
    "first bounce all members to this release with the topology as it is, then change the topology"
)

TOPOLOGY_MEMBER_RULES: Final = (
    MemberRule(
        name="a JVM member",
        holds=lambda n: not n.is_native and n.beside_jvm,
        treatment="jvm",
        why="its subscription carries no topology: it is taken to have that of the native members",
    ),
    MemberRule(
        name="an impossible version",
        holds=lambda n: not n.has_valid_version,
        treatment="refuse",
        why="versions of a topology are 1 to 2**31 - 1: stop this member",
    ),
    MemberRule(
        name="another topology beside JVM members",
        holds=lambda n: n.beside_jvm and not n.is_group_topology,
        treatment="refuse",
        why="it has another topology than the JVM members of the group: replace the JVM members by"
        " native ones with their topology, then change the topology",
    ),
    MemberRule(
        name="a topology that is not admitted",
        holds=lambda n: n.is_described and not n.is_admitted,
        treatment="refuse",
        why="its topology does not go together with that of other members: {contradiction};"
        " correct it, or stop this member",
    ),
    MemberRule(
        name="a known topology",
        holds=lambda n: n.is_described,
        treatment="carries",
        why="the leader knows which subtopologies it can run",
    ),
    MemberRule(
        name="an unknown topology",
        holds=lambda n: n.is_native and not n.was_asked,
        treatment="ask",
        why="the leader does not know its topology and asks for it",
    ),
    MemberRule(
        name="a missed question",
        holds=lambda n: 0 < n.missed < MOST_ASKED,
        treatment="ask",
        why="it did not take the answer that asked for its topology: it is asked again, 3 times in"
        " all",
    ),
    MemberRule(
        name="a member that takes no answer",
        holds=lambda n: n.missed > 0,
        treatment="refuse",
        why="it took none of the answers that asked for its topology, which is not the leader's: it"
        " gets tasks once it describes its topology",
    ),
    MemberRule(
        name="a release that does not describe its topology",
        holds=lambda _: True,
        treatment="refuse",
        why="its topology is not the leader's, and its release does not describe topologies: "
        + _FIRST_BOUNCE,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerNumbers:
    """Inputs of a row of `TOPOLOGY_ANSWER_RULES`: an answer, as its member sees it.

    Attributes:
        is_numbered: it says by which subtopologies its tasks are numbered.
        has_tasks: it has active or standby tasks.
        has_unknown_tasks: some of them are of subtopologies that the member has not.
        is_plain: the member carries version 1 of its topology alone.
        sizes_fit: the numbers of tasks are those of the member's own topology, as far as they are
            told.
    """

    is_numbered: bool
    has_tasks: bool
    has_unknown_tasks: bool
    is_plain: bool
    sizes_fit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRule:
    """One row: its condition, whether the member runs the answer's tasks, and the sentence."""

    name: str
    holds: Callable[[AnswerNumbers], bool]
    accepted: bool
    why: str


TOPOLOGY_ANSWER_RULES: Final = (
    AnswerRule(
        name="a task that it cannot run",
        holds=lambda n: n.has_unknown_tasks,
        accepted=False,
        why="the leader's answer has {tasks}, of a subtopology that this member has not; look at"
        " the leader's log",
    ),
    AnswerRule(
        name="numbered by content",
        holds=lambda n: n.is_numbered,
        accepted=True,
        why="the answer says by which subtopologies its tasks are numbered",
    ),
    AnswerRule(
        name="no tasks",
        holds=lambda n: not n.has_tasks,
        accepted=True,
        why="the answer has no tasks",
    ),
    AnswerRule(
        name="version 1, and the numbers fit",
        holds=lambda n: n.is_plain and n.sizes_fit,
        accepted=True,
        why="the tasks are checked against the partitions of this member's topology",
    ),
    AnswerRule(
        name="another topology",
        holds=lambda n: n.is_plain,
        accepted=False,
        why="the leader numbers tasks by another topology, and this member runs none of them: "
        + _FIRST_BOUNCE,
    ),
    AnswerRule(
        name="a later version without numbers",
        holds=lambda _: True,
        accepted=False,
        why="the leader does not say which topology its tasks belong to, and this member carries"
        " topology version {versions}: " + _FIRST_BOUNCE,
    ),
)


def answer_rule(numbers: AnswerNumbers) -> AnswerRule:
    """Return the row that decides whether a member runs the tasks of an answer."""
    return next(rule for rule in TOPOLOGY_ANSWER_RULES if rule.holds(numbers))


def topology_member_rule(numbers: MemberNumbers) -> MemberRule:
    """Return the row that decides what the leader does with a member."""
    return next(rule for rule in TOPOLOGY_MEMBER_RULES if rule.holds(numbers))
