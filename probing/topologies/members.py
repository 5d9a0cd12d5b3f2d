"""Decision tables: what a leader does with a member's topology, and a member with an answer.

The first row that holds decides.
"""

from dataclasses import dataclass
from typing import Final, Literal

from probing.rules import Rule, Rules, always


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
        contradiction: how what it can run contradicts the topologies of other members; "": it does
            not.
    """

    is_native: bool
    beside_jvm: bool
    is_group_topology: bool
    is_described: bool
    was_asked: bool
    missed: int = 0
    has_valid_version: bool = True
    contradiction: str = ""


Treatment = Literal["carries", "jvm", "ask", "refuse"]
"""What the leader does with a member.

"carries": it gets what it can run; "jvm": it gets tasks of the group's topology; "ask": it is asked
to describe its topology, and gets nothing until then; "refuse": it gets nothing.
"""

MOST_ASKED: Final = 3
"""Answers in a row that ask a member to describe its topology. Each costs a rebalance at most."""

_FIRST_BOUNCE = (
    "first bounce all members to this release with the topology as it is, then change the topology"
)

TOPOLOGY_MEMBER_RULES: Final[Rules[MemberNumbers, Treatment]] = (
    Rule(
        name="a JVM member",
        holds=lambda n: not n.is_native and n.beside_jvm,
        says="jvm",
        why="its subscription carries no topology: it is taken to have that of the native members",
    ),
    Rule(
        name="an impossible version",
        holds=lambda n: not n.has_valid_version,
        says="refuse",
        why="versions of a topology are 1 to 2**31 - 1: stop this member",
    ),
    Rule(
        name="another topology beside JVM members",
        holds=lambda n: n.beside_jvm and not n.is_group_topology,
        says="refuse",
        why="it has another topology than the JVM members of the group: replace the JVM members by"
        " native ones with their topology, then change the topology",
    ),
    Rule(
        name="a topology that is not admitted",
        holds=lambda n: n.is_described and bool(n.contradiction),
        says="refuse",
        why="its topology does not go together with that of other members: {contradiction};"
        " correct it, or stop this member",
    ),
    Rule(
        name="a known topology",
        holds=lambda n: n.is_described,
        says="carries",
        why="the leader knows which subtopologies it can run",
    ),
    Rule(
        name="an unknown topology",
        holds=lambda n: n.is_native and not n.was_asked,
        says="ask",
        why="the leader does not know its topology and asks for it",
    ),
    Rule(
        name="a missed question",
        holds=lambda n: 0 < n.missed < MOST_ASKED,
        says="ask",
        why="it did not take the answer that asked for its topology: it is asked again, 3 times in"
        " all",
    ),
    Rule(
        name="a member that takes no answer",
        holds=lambda n: n.missed > 0,
        says="refuse",
        why="it took none of the answers that asked for its topology, which is not the leader's: it"
        " gets tasks once it describes its topology",
    ),
    Rule(
        name="a release that does not describe its topology",
        holds=always,
        says="refuse",
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


TOPOLOGY_ANSWER_RULES: Final[Rules[AnswerNumbers, bool]] = (
    Rule(
        name="a task that it cannot run",
        holds=lambda n: n.has_unknown_tasks,
        says=False,
        why="the leader's answer has {tasks}, of a subtopology that this member has not; look at"
        " the leader's log",
    ),
    Rule(
        name="numbered by content",
        holds=lambda n: n.is_numbered,
        says=True,
        why="the answer says by which subtopologies its tasks are numbered",
    ),
    Rule(
        name="no tasks",
        holds=lambda n: not n.has_tasks,
        says=True,
        why="the answer has no tasks",
    ),
    Rule(
        name="version 1, and the numbers fit",
        holds=lambda n: n.is_plain and n.sizes_fit,
        says=True,
        why="the tasks are checked against the partitions of this member's topology",
    ),
    Rule(
        name="another topology",
        holds=lambda n: n.is_plain,
        says=False,
        why="the leader numbers tasks by another topology, and this member runs none of them: "
        + _FIRST_BOUNCE,
    ),
    Rule(
        name="a later version without numbers",
        holds=always,
        says=False,
        why="the leader does not say which topology its tasks belong to, and this member carries"
        " topology version {versions}: " + _FIRST_BOUNCE,
    ),
)
"""Whether the member runs the tasks of an answer."""
