"""What a poll loop does after each event: one table for the loops of all clients.

The loops of the adapters ask `decide` and do what the row says. docs/loops.md is generated from
these rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final

from assignor.embedding.errors import (
    LEFT_GROUP,
    ClusterUnavailable,
    ListenerFailed,
    LostPosition,
    MemberStopped,
    UnreadableRecord,
    error_text,
    fatal_reason,
    is_interrupt,
)
from assignor.errors import ConfigError, TopologyError
from encoding import RebalanceError, TopicPartition

CLOSED: Final = "this consumer is closed; make another to go on"
"""Why a consumer that is closed is not polled, and commits nothing."""

# Class names of the clients' errors, which have no common base.
_LOST: Final = frozenset(
    {"LogTruncationError", "NoOffsetForPartitionError", "OffsetOutOfRangeError"}
)
_UNREADABLE: Final = frozenset({"RecordTooLargeError"})
_REMOVED: Final = frozenset({"CommitFailedError", "IllegalStateError", "RebalanceInProgressError"})
_UNANSWERED: Final = frozenset({"KafkaTimeoutError", "KafkaUnavailableError", "TimeoutError"})


class Step(Enum):
    """Where in a loop an event happens."""

    NEXT = "before a poll"
    POLL = "in a poll"
    PROCESS = "while records are processed"
    COMMIT = "in a commit"
    REBALANCE = "in a rebalance"


class Then(Enum):
    """What a loop does."""

    POLL = "polls"
    END = "ends"
    RAISE = "raises the error"
    STOP = "leaves the group and raises `MemberStopped`"
    RETRY = "waits 0.1 s to 10 s, longer each time, and continues"
    LATER = "continues; `commit_next` returns False"
    SETTLE = "continues [where the input is](#how-far-the-input-is)"
    BEGIN = "reads them from their committed offsets"
    GIVE_UP = "commits what is finished, then gives them up"
    DROP = "drops all its partitions, and commits nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFacts:
    """Inputs of a row.

    Attributes:
        step: where the event happens.
        error: what was raised, or None.
        is_ended: the loop was asked to end.
        is_shutdown: the whole group was asked to end (KIP-671).
        is_closed: the consumer is closed.
        is_handlers: the function that processes records raised the error.
        is_clients: the error is one of the client.
        resets: `auto_offset_reset` is earliest or latest.
        failing_s: how long every poll, or every commit, has failed.
        patience_s: how long they may fail with errors of which nothing is known.
        fenced_after_s: how long they may fail with this error, which a fenced member gets.
        is_lost: other members may have the partitions already.
        is_assigned: partitions are assigned.
    """

    step: Step
    error: BaseException | None = None
    is_ended: bool = False
    is_shutdown: bool = False
    is_closed: bool = False
    is_handlers: bool = False
    is_clients: bool = False
    resets: bool = False
    failing_s: float = 0.0
    patience_s: float = inf
    fenced_after_s: float = inf
    is_lost: bool = False
    is_assigned: bool = False

    def is_a(self, *kinds: type[BaseException]) -> bool:
        """Return whether the error is of one of these classes."""
        return isinstance(self.error, kinds)

    def is_named(self, names: frozenset[str]) -> bool:
        """Return whether the class of the error, or a base of it, has one of these names."""
        return any(kind.__name__ in names for kind in type(self.error).__mro__)

    @property
    def may_pass(self) -> bool:
        """Whether the error may pass by itself: of the cluster, the network, or other members."""
        if self.step is Step.PROCESS:
            return self.is_clients or self.is_a(ClusterUnavailable)
        is_passing = getattr(self.error, "retriable", False) is True or self.is_named(_UNANSWERED)
        is_own = self.is_a(RebalanceError) and not self.is_a(ConfigError, TopologyError)
        return is_passing or is_own or self.is_a(OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRule:
    """One row.

    Attributes:
        name: of the event.
        steps: where it happens.
        holds: whether it is this event.
        then: what the loop does.
        effect: what becomes of records and offsets, as a sentence.
        stops: returns what is raised, if not the error itself.
    """

    name: str
    steps: tuple[Step, ...]
    holds: Callable[[LoopFacts], bool]
    then: Then
    effect: str
    stops: Callable[[LoopFacts], MemberStopped] | None = None


UNANSWERED_COMMIT: Final = LoopRule(
    name="no broker answers within `request_timeout_ms`",
    steps=(Step.COMMIT,),
    holds=lambda f: f.is_named(_UNANSWERED),
    then=Then.LATER,
    effect="Commit again after the next poll.",
)
LOOP_RULES: Final = (
    LoopRule(
        name="`stop` is set, or the application is closed on another thread",
        steps=(Step.NEXT,),
        holds=lambda f: f.is_ended,
        then=Then.END,
        effect="The record that is being processed is finished, and what is finished is committed. "
        "A commit that is refused is repeated, after a poll each, for 5 s at most.",
    ),
    LoopRule(
        name="the whole group was asked to stop (KIP-671)",
        steps=(Step.NEXT,),
        holds=lambda f: f.is_shutdown,
        then=Then.END,
        effect="As above. Members of the whole group end.",
    ),
    LoopRule(
        name="otherwise",
        steps=(Step.NEXT,),
        holds=lambda f: f.step is Step.NEXT,
        then=Then.POLL,
        effect="Records are delivered.",
    ),
    LoopRule(
        name="an interrupt: Ctrl-C, or what the handler of a signal raises",
        steps=(Step.POLL, Step.PROCESS, Step.COMMIT),
        holds=lambda f: is_interrupt(f.error),
        then=Then.RAISE,
        effect="Records that were fetched and not delivered are fetched again by the next poll.",
    ),
    LoopRule(
        name="a method of the listener has raised in a rebalance",
        steps=(Step.POLL,),
        holds=lambda f: f.is_a(ListenerFailed),
        then=Then.RAISE,
        effect="`ListenerFailed`, once. Records that were not delivered are fetched again by the "
        "next poll: the assignment holds.",
    ),
    LoopRule(
        name="the function that processes records raises",
        steps=(Step.PROCESS,),
        holds=lambda f: f.is_handlers,
        then=Then.RAISE,
        effect="The record has no effect on state. The next `run`, or the next member, begins with "
        "it.",
    ),
    LoopRule(
        name="the consumer was closed after the loop was asked to end",
        steps=(Step.POLL, Step.PROCESS, Step.COMMIT),
        holds=lambda f: f.is_closed and f.is_ended,
        then=Then.END,
        effect="Nothing is committed.",
    ),
    LoopRule(
        name="the consumer is closed",
        steps=(Step.POLL, Step.PROCESS, Step.COMMIT),
        holds=lambda f: f.is_closed,
        then=Then.STOP,
        effect="It has left by that. Nothing is committed.",
        stops=lambda f: MemberStopped(CLOSED),  # noqa: ARG005 each row has the same form
    ),
    LoopRule(
        name="the position of a partition is lost, or none is committed",
        steps=(Step.POLL,),
        holds=lambda f: f.is_named(_LOST) and f.resets,
        then=Then.SETTLE,
        effect="A lost position is a warning with both offsets.",
    ),
    LoopRule(
        name="the same, and `auto_offset_reset` is none",
        steps=(Step.POLL,),
        holds=lambda f: f.is_named(_LOST),
        then=Then.STOP,
        effect="`LostPosition` names partition, offset and remedy.",
        stops=lambda f: LostPosition(lost_positions(f.error)),
    ),
    LoopRule(
        name="the member was fenced or refused, or cannot go on",
        steps=(Step.POLL, Step.PROCESS),
        holds=lambda f: f.is_a(MemberStopped),
        then=Then.STOP,
        effect="The message says what to do.",
    ),
    LoopRule(
        name="a record cannot be read: deserializer, codec, checksum, size",
        steps=(Step.POLL, Step.PROCESS),
        holds=lambda f: f.is_a(UnreadableRecord) or f.is_named(_UNREADABLE),
        then=Then.RAISE,
        effect="`UnreadableRecord` names topic, partition and offset. What was delivered before it "
        "can be committed. Another loop over the consumer raises it again, unless the application "
        "seeks past it.",
    ),
    LoopRule(
        name="an error that would come again: rights, login, session timeout, assignors",
        steps=(Step.POLL, Step.PROCESS, Step.COMMIT),
        holds=lambda f: f.error is not None and fatal_reason(f.error) is not None,
        then=Then.STOP,
        effect="The message says what to do. `commit_next` raises the error itself.",
        stops=lambda f: MemberStopped(_with_remedy(f.error)),
    ),
    LoopRule(
        name="unknown errors of a static member of aiokafka, for a session timeout",
        steps=(Step.POLL,),
        holds=lambda f: f.failing_s > f.fenced_after_s,
        then=Then.STOP,
        effect="Most likely another process has the same `group.instance.id`.",
        stops=lambda f: MemberStopped(
            f"{LEFT_GROUP} ({f.error}): most likely "
            "another process with this group.instance.id took over; give each its own"
        ),
    ),
    LoopRule(
        name="the group has removed this member, or rebalances",
        steps=(Step.COMMIT,),
        holds=lambda f: f.is_named(_REMOVED),
        then=Then.LATER,
        effect="The member that has the partition then processes the records again.",
    ),
    UNANSWERED_COMMIT,
    LoopRule(
        name="an error that may pass, as the client says",
        steps=(Step.COMMIT,),
        holds=lambda f: f.may_pass and f.failing_s <= f.patience_s,
        then=Then.RETRY,
        effect="Until every commit has failed for `max_poll_interval_ms`. `commit_next` raises the "
        "error.",
    ),
    LoopRule(
        name="the cluster cannot be reached or is not ready, or the group has no assignment",
        steps=(Step.POLL, Step.PROCESS),
        holds=lambda f: f.may_pass,
        then=Then.RETRY,
        effect="There is no limit. Records that are not processed are kept, and tried again once a "
        "second or more often.",
    ),
    LoopRule(
        name="another error of the client",
        steps=(Step.POLL,),
        holds=lambda f: f.is_clients and f.failing_s <= f.patience_s,
        then=Then.RETRY,
        effect="Until every poll has failed for `max_poll_interval_ms`.",
    ),
    LoopRule(
        name="the same for longer",
        steps=(Step.POLL,),
        holds=lambda f: f.is_clients,
        then=Then.STOP,
        effect="The message names the last error.",
        stops=lambda f: MemberStopped(
            f"{LEFT_GROUP}: every poll has failed for {f.failing_s:.0f} s, the last one with "
            f"{error_text(f.error or Exception())}; correct the cause, and restart it"
        ),
    ),
    LoopRule(
        name="partitions are lost, or the group has removed this member meanwhile",
        steps=(Step.REBALANCE,),
        holds=lambda f: f.is_lost,
        then=Then.DROP,
        effect="Their owners continue at the last commit. State does not get what came later.",
    ),
    LoopRule(
        name="partitions are assigned",
        steps=(Step.REBALANCE,),
        holds=lambda f: f.is_assigned,
        then=Then.BEGIN,
        effect="Unless the application seeks in a callback. Where the topic does not have a "
        "committed offset, the state of a task [decides](#the-input-of-a-tasks-state) over a seek.",
    ),
    LoopRule(
        name="partitions are revoked",
        steps=(Step.REBALANCE,),
        holds=lambda f: f.step is Step.REBALANCE,
        then=Then.GIVE_UP,
        effect="Records of them that are kept are dropped, and read again if they come back. With "
        "`polled`, and with `Consumer` without `enable.auto.commit`, the application commits.",
    ),
    LoopRule(
        name="any other error",
        steps=(Step.POLL, Step.PROCESS, Step.COMMIT),
        holds=lambda f: True,  # noqa: ARG005 the last row always holds
        then=Then.RAISE,
        effect="Records that were not delivered are fetched again by the next poll.",
    ),
)
"""The first row of the step that holds decides."""


def decide(facts: LoopFacts) -> LoopRule:
    """Return the row that says what a loop does."""
    return next(rule for rule in LOOP_RULES if facts.step in rule.steps and rule.holds(facts))


def lost_positions(error: BaseException | None) -> dict[TopicPartition, int | None]:
    """Return partition -> the offset that it does not have, of an error of any client."""
    given = getattr(error, "divergent_offsets", None) or next(iter(getattr(error, "args", ())), ())
    if isinstance(given, tuple):  # aiokafka names one partition
        given = [given]
    offsets = given if isinstance(given, dict) else dict.fromkeys(given)
    return {
        TopicPartition(topic, partition): getattr(at, "offset", at)
        for (topic, partition), at in offsets.items()
    }


def _with_remedy(error: BaseException | None) -> str:
    problem = error or Exception()
    return f"this member cannot go on ({error_text(problem)}): {fatal_reason(problem)}"
