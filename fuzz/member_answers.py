"""Promises for a member that gets any answer.

An input is the bytes of an answer, then two bytes that select the member and the assigned
partitions. The member is that of the adapters, without a client: it writes a subscription and takes
the answer, twice. Nothing raises; the member adopts tasks of its topology only; its listener gets
these tasks; after an answer that it cannot use it rejoins, unless a finalized level ends it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from assignor.adapters.membership import Driver, EmbeddedMember
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
    """A member with its client port, timer and listener, which record their calls."""

    assignor: EmbeddedMember = field(init=False)
    instance_id: str | None = None
    rejoins: int = 0
    delays_s: list[float] = field(default_factory=list)
    assigned: list[Mapping[TaskId, Any]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)

    # As a client port

    def request_rejoin(self) -> None:
        """Count a rejoin."""
        self.rejoins += 1

    def is_rebalancing(self) -> bool:
        """No rebalance is running."""
        return False

    def generation(self) -> int:
        """The member never loses its membership."""
        return 1

    def member_id(self) -> str:
        """It never leads, so no member id is asked for."""
        return ""

    def group_instance_id(self) -> str | None:
        """Name of a static member."""
        return self.instance_id

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """The partitions of the member's active tasks."""
        return sorted({p for inputs in self.assignor.tasks.active.values() for p in inputs})

    def start_timer(self, delay_s: float, _call: Callable[[], None]) -> Any:
        """Record the delay; the timer never fires."""
        self.delays_s.append(delay_s)
        return SimpleNamespace(cancel=lambda: None)

    # As a listener

    def on_tasks_assigned(self, active: Any, standby: Any) -> None:
        """Record the tasks."""
        self.assigned.append({**active, **standby})


def member_of(options: int) -> Member:
    """The member that the bits of a byte select."""
    member = Member(instance_id="i" if options & _STATIC else None)
    member.assignor = EmbeddedMember(
        TOPOLOGY,
        application_id="app",
        process_id=UUID(int=1),
        listener=member,
        observer=member.events.append,
        hooks=(),
        endpoint="here:1" if options & _SERVES else None,
        upgrade_from="1.1" if options & _PINNED else None,
        start_version="latest" if options & _LATEST else None,
        rebalance_protocol="cooperative" if options & _COOPERATIVE else "eager",
    )
    membership_of(member).connect(member)
    return member


def membership_of(member: Member) -> Driver:
    """Return what an adapter would call."""
    return member.assignor._driver  # noqa: SLF001 an adapter's part


def partitions_of(options: int) -> tuple[TopicPartition, ...]:
    """The partitions that the bits of a byte select."""
    return tuple(partition for bit, partition in enumerate(PARTITIONS) if options >> bit & 1)


def member_receive(data: bytes) -> None:
    """Give an answer to a member in two generations, and check the result."""
    blob, options = data[:-OPTION_BYTES], data[-OPTION_BYTES:].rjust(OPTION_BYTES, b"\0")
    member = member_of(options[0])
    for generation in (1, 2):
        check_answer(member, partitions_of(options[1]), blob, generation)
        if member.assignor.failed is not None:
            break


def check_answer(
    member: Member, partitions: Iterable[TopicPartition], blob: bytes, generation: int
) -> None:
    """Let a member join and take an answer, and check the result."""
    assignor = member.assignor
    membership = membership_of(member)
    written = membership.join()
    expect(bool(written), "a member can always write a subscription")
    rejoins, delays, calls, event_count = (
        member.rejoins,
        *map(len, (member.delays_s, member.assigned, member.events)),
    )
    membership.take(partitions, blob, generation)
    held = assignor.tasks
    adopted = {**held.active, **held.standby}
    expect(
        member.assigned[calls:] == [adopted],
        "the listener is called once, with the tasks that are held",
    )
    expect(not held.active.keys() & held.standby.keys(), "a task is active or standby")
    expect(held.warmup <= held.standby.keys(), "warm-ups are standby tasks")
    for task, inputs in adopted.items():
        topics = TOPICS.get(task.subtopology, ())
        expect(task.topology_name is None and bool(topics), f"{task} is of the topology")
        expect(bool(inputs), f"{task} reads something")
        expect(len(set(inputs)) == len(inputs), f"{task} reads each partition once")
        own = all(p.topic in topics and p.partition == task.partition for p in inputs)
        expect(own, f"{task} reads partitions of its own")
    observed = member.events[event_count:]
    expect(isinstance(observed[-1], AnswerHandled), "every answer is handled")
    asked = member.rejoins > rejoins or len(member.delays_s) > delays
    refused = any(isinstance(event, AnswerRefused) for event in observed)
    expect(asked or not refused, "an answer that cannot be taken is asked for again")
    expect(not (refused and adopted), "an answer that cannot be taken leaves no tasks")
    refusal = membership.member.state.refusal
    expect((assignor.failed is None) == (refusal is None), "a member ends by a refusal")
    ends = refusal is None or "level" in refusal.why
    expect(ends, "only a finalized level ends a member")
