"""What has to hold for a member, whatever a leader answers it.

An input is the bytes of an answer and, behind them, two bytes that pick the member and the
partitions that come with it. The member is that of the adapters, without a client: it takes the
answer twice and writes a subscription before each. Nothing is raised, the tasks that it adopts are
those of its topology, its listener knows of them, and an answer that it cannot take is asked for
again, unless the group's finalized levels end the member.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from assignor.adapters.membership import FollowupTimer, SharedAssignor
from assignor.observe import AnswerHandled, AnswerRefused
from assignor.rebalance import TasksListener
from assignor.topology import Topology
from encoding import TaskId, TopicPartition
from fuzz.promises import expect

__all__ = ["OPTION_BYTES", "Member", "check_answer", "member_of", "member_receive", "partitions_of"]

OPTION_BYTES = 2
TOPOLOGY = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_source("pairs", topics=["left", "right"])
    .add_processor("join", parents=["pairs"])
    .add_state_store("joined", processors=["join"])
)
TOPICS = {0: ("lines",), 1: ("left", "right")}
"""Source topics of each subtopology, as the topology numbers them."""

PARTITIONS = tuple(
    sorted(
        TopicPartition(topic, n) for topics in TOPICS.values() for topic in topics for n in (0, 1)
    )
)
_STATIC, _COOPERATIVE, _SERVES, _PINNED, _LATEST = (1 << bit for bit in range(5))


@dataclass
class Member(TasksListener):
    """A member and all that is around it, counted."""

    assignor: SharedAssignor = field(init=False)
    rejoins: int = 0
    delays_s: list[float] = field(default_factory=list)
    told: list[Mapping[TaskId, Any]] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    # As a client port

    def request_rejoin(self) -> None:
        """Count a rejoin."""
        self.rejoins += 1

    def is_rebalancing(self) -> bool:
        """No rebalance is running."""
        return False

    def has_lost_membership(self) -> bool:
        """It never falls out of the group."""
        return False

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """What a cooperative member has not given up."""
        return sorted({p for inputs in self.assignor.tasks.active.values() for p in inputs})

    # As a timer and a listener

    def start_timer(self, delay_s: float, _call: Callable[[], None]) -> Any:
        """Keep the delay of a timer that never fires."""
        self.delays_s.append(delay_s)
        return SimpleNamespace(cancel=lambda: None)

    def on_tasks_assigned(self, active: Any, standby: Any) -> None:
        """Keep what was told."""
        self.told.append({**active, **standby})


def member_of(options: int) -> Member:
    """Make the member that the bits of a byte pick."""
    member = Member()
    member.assignor = SharedAssignor(
        TOPOLOGY,
        application_id="app",
        process_id=UUID(int=1),
        listener=member,
        observer=member.seen.append,
        hooks=(),
        endpoint="here:1" if options & _SERVES else None,
        upgrade_from="1.1" if options & _PINNED else None,
        start_version="latest" if options & _LATEST else None,
        rebalance_protocol="cooperative" if options & _COOPERATIVE else "eager",
    )
    timer = FollowupTimer(member.request_rejoin, member.is_rebalancing, member.start_timer)
    member.assignor._connect(member, timer, "i" if options & _STATIC else None)  # noqa: SLF001 an adapter's part
    return member


def partitions_of(options: int) -> tuple[TopicPartition, ...]:
    """Make the partitions that the bits of a byte pick."""
    return tuple(one for bit, one in enumerate(PARTITIONS) if options >> bit & 1)


def member_receive(data: bytes) -> None:
    """Give an answer to a member, twice."""
    blob, options = data[:-OPTION_BYTES], data[-OPTION_BYTES:].rjust(OPTION_BYTES, b"\0")
    member = member_of(options[0])
    for generation in (1, 2):
        check_answer(member, partitions_of(options[1]), blob, generation)


def check_answer(
    member: Member, partitions: Iterable[TopicPartition], blob: bytes, generation: int
) -> None:
    """Have a member join and take an answer, and check what came of it."""
    assignor = member.assignor
    written = assignor._join()  # noqa: SLF001 an adapter's part
    expect(bool(written), "a member can always write a subscription")
    rejoins, delays, told, seen = (
        member.rejoins,
        *map(len, (member.delays_s, member.told, member.seen)),
    )
    assignor._take(partitions, blob, generation)  # noqa: SLF001 as above
    held = assignor.tasks
    adopted = {**held.active, **held.standby}
    expect(member.told[told:] == [adopted], "the listener is told once, of what is held")
    expect(not held.active.keys() & held.standby.keys(), "a task is active or standby")
    expect(held.warmup <= held.standby.keys(), "warm-ups are standby tasks")
    for task, inputs in adopted.items():
        topics = TOPICS.get(task.subtopology, ())
        expect(task.topology_name is None and bool(topics), f"{task} is of the topology")
        expect(bool(inputs), f"{task} reads something")
        expect(len(set(inputs)) == len(inputs), f"{task} reads each partition once")
        own = all(p.topic in topics and p.partition == task.partition for p in inputs)
        expect(own, f"{task} reads partitions of its own")
    observed = member.seen[seen:]
    expect(isinstance(observed[-1], AnswerHandled), "every answer is handled")
    asked = member.rejoins > rejoins or len(member.delays_s) > delays
    refused = any(isinstance(one, AnswerRefused) for one in observed)
    expect(asked or not refused, "an answer that cannot be taken is asked for again")
    expect(not (refused and adopted), "an answer that cannot be taken leaves no tasks")
    refusal = assignor._member.state.refusal  # noqa: SLF001 as above
    expect((assignor.failed is None) == (refusal is None), "a member ends by a refusal")
    ends = refusal is None or "level" in refusal.why
    expect(ends, "only a finalized level ends a member")
