"""What a member needs of its client, and what its client may expect: the driver's contract.

A client library takes part with a `ClientPort`, and with an assignor, a subclass of
`EmbeddedMember`. The assignor is what the library calls; it calls the `Driver`, in this order:

| call | when | raises | may wait |
| --- | --- | --- | --- |
| `connect` | once, before the first join, when the consumer is known | `ConfigError` | no |
| `watch_cluster` | once, after it; its function connects on a thread of the driver | nothing | no |
| `join` | before each JoinGroup, whose user data it returns; `member.owned` is what it names as \
owned | `MemberRefused`: do not join | for callbacks |
| `assignor_chosen` | after a JoinGroup, with the protocol that the group has chosen | nothing | \
for callbacks |
| `decide` | if the member leads, between its `join` and its `take` | `TaskAssignmentError`: \
send no answer, and join again | for `cluster.patience_s`, 0 by default |
| `answer_replaced` | before `take`: why the client cannot decode the answer, or "" | nothing | no |
| `take` | after each SyncGroup; nothing was assigned, if the answer cannot be decoded | nothing | \
for callbacks |
| `close` | once, after the consumer has left the group | nothing | for its threads |

- *Threads.* From `join` to `take` all calls come from the thread, or task, in which the client
  joins, one after the other. They call the application's listener and observers, "callbacks",
  which may open state. `close`, `request_shutdown` and what the application reads come from any
  thread.
- *Raises.* What a callback raises is logged and kept (`raise_listener_error`), so that the client's
  bookkeeping continues. Only KeyboardInterrupt, GeneratorExit, CancelledError and MemoryError pass.
- *Waits.* Nothing waits for a broker, but `decide` for so long as heartbeats can pause. Cluster and
  levels are read on threads of the driver's own.
- *Bytes.* What other members wrote may be anything. A client that decodes it unguarded gets
  `readable_metadata` and `unusable_answer` in between.
- *Poll loops.* `check_member` (assignor/adapters/poll_arguments.py) after each poll ends the loop
  of a member that has failed; the loop then leaves the group. `has_left` tells it whether that has
  happened already.

A port's methods never raise, never wait, and call nothing back. `request_rejoin`, `is_rebalancing`,
`start_timer`, `generation` and `unheard_s` are called on any thread; `is_rebalancing`,
`start_timer` and the `cancel` of a timer with a lock of the driver held, so `cancel` does not wait
for its call. `group_instance_id` is called in `connect`, the others from `join` to `take`. Every
client passes the suite in `tests/assignor/adapters/contract/ports/`, also an invented one of about
150 lines that is beside it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from assignor.errors import ConfigError
from encoding import TopicPartition


class Cancellable(Protocol):
    """A scheduled call, as `threading.Timer` and asyncio's handles are."""

    def cancel(self) -> object:
        """Drop the call."""


StartTimer = Callable[[float, Callable[[], None]], Cancellable]
"""(seconds, function) -> the scheduled call of the function."""


class ClientPort(Protocol):
    """What a member asks of its client, one for each consumer; the module has the contract."""

    def request_rejoin(self) -> None:
        """Let the client join again as soon as it can."""

    def is_rebalancing(self) -> bool:
        """Return whether a rebalance is running, in which a request to rejoin would be lost."""

    def generation(self) -> int:
        """Return the generation of the last join, also while the leader still decides.

        -1: the member is in none: not yet, or the group removed it.
        """

    def member_id(self) -> str:
        """Return the member id of the last join, also while the leader decides; "" if unknown."""

    def owned_partitions(self) -> Iterable[TopicPartition]:
        """Return the partitions that the client has been assigned and has not given up."""

    def group_instance_id(self) -> str | None:
        """Return the `group.instance.id` of a static member; None for a dynamic one."""

    def unheard_s(self) -> float:
        """Return for how many seconds no coordinator has answered a member in a session.

        0.0: one has within the session timeout.
        """

    def start_timer(self, delay_s: float, call: Callable[[], None]) -> Cancellable:
        """Call `call` in `delay_s` seconds, on a thread or the client's event loop."""


class ClusterMetadata(Protocol):
    """What clients pass to a leading assignor: the topics that they know."""

    def partitions_for_topic(self, topic: str) -> Collection[int] | None:
        """Return the partition numbers of a topic; None or nothing where the client knows none."""


def partition_counts(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[str, int]:
    """Return topic -> number of partitions as the client has it, 0 for an unknown topic."""
    return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in sorted(topics)}


def check_listed(assignor: object, listed: Sequence[object]) -> None:
    """Check that a consumer prefers an assignor: the group chooses the first that all members have.

    Args:
        assignor: to be attached.
        listed: classes or instances, in the order of the consumer's setting.

    Raises:
        ConfigError: another assignor comes first, this one is missing, or there are two of a kind.
    """
    names = [getattr(each, "__name__", type(each).__name__) for each in listed]
    if not (places := [place for place, each in enumerate(listed) if each is assignor]):
        raise ConfigError(
            f"the consumer was made with {', '.join(names) or 'no assignor'}, not with this"
            " instance; make it with partition_assignment_strategy=[assignor]"
        )
    if any(isinstance(each, type(assignor)) and each is not assignor for each in listed):
        raise ConfigError(
            "two StreamsAssignors are in partition_assignment_strategy, and the group would use"
            " only the first; keep one"
        )
    if places[0] > 0:
        raise ConfigError(
            f"{names[0]} comes before StreamsAssignor in partition_assignment_strategy, so the"
            " group would choose it and no task would run; put StreamsAssignor first"
        )
