"""What objects of kafka-python's and aiokafka's consumers keep for all loops over a consumer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from assignor.embedding.loops import BrokerWaits, DeletedTopics, InputWatch

_Result = TypeVar("_Result")


def deleted_topics(coordinator: object) -> DeletedTopics:
    """Return what names the topics that are gone for a consumer."""
    return _kept(coordinator, "deleted_topics", DeletedTopics)


def input_watch(coordinator: object, reset: str) -> InputWatch:
    """Return what knows of which topics the positions of a consumer are, also in later loops.

    Args:
        coordinator: of the consumer.
        reset: `auto_offset_reset` of the consumer, as far as its loops have to do it.
    """
    new = partial(InputWatch, reset, deleted_topics(coordinator))
    return _kept(coordinator, "input_watch", new)


def broker_waits(coordinator: object) -> BrokerWaits:
    """Return what adds up how long the commits of a consumer take."""
    return _kept(coordinator, "broker_waits", BrokerWaits)


def _kept(holder: object, name: str, kind: Callable[[], _Result]) -> _Result:
    """Return what an object of a client keeps for its consumer; without one, a new one."""
    found: _Result = getattr(holder, name, None) or kind()
    if holder is not None:
        setattr(holder, name, found)
    return found


def waited_s(consumer: Any, assignor: Any) -> float:
    """Return how long commits of a member, of offsets and of its `TaskStores`, have waited."""
    work = getattr(getattr(assignor, "listener", None), "work", None)
    commits_s: float = getattr(work, "commit_s", 0.0)
    return commits_s + broker_waits(getattr(consumer, "_coordinator", None)).total_s


def application_pauses(subscription: Any) -> set[Any]:
    """Return the partitions that the application has paused; a loop removes those that it pauses.

    A client has no more than a flag for each partition.

    Args:
        subscription: of the consumer, which pauses and resumes by it; None: it has none.
    """
    return _kept(subscription, "application_pauses", partial(_Pauses, subscription)).partitions


class _Pauses:
    """Notes each partition that is paused by a subscription, until it is resumed."""

    def __init__(self, subscription: Any) -> None:
        self.partitions: set[Any] = set()
        for name, note in (("pause", self.partitions.add), ("resume", self.partitions.discard)):
            if call := getattr(subscription, name, None):
                setattr(subscription, name, partial(_call_and_note, call, note))


def _call_and_note(
    call: Callable[[Any], object], note: Callable[[Any], object], partition: Any
) -> None:
    call(partition)
    note(partition)


@dataclass
class _Resets:
    """What a client does with lost positions while no loop settles them, and how many loops do."""

    before: Any = None
    loops: int = 0


@contextmanager
def own_resets(holder: object, name: str, none: object) -> Iterator[Any]:
    """Have a client raise lost positions, for the loop to settle; yield what it did with them.

    Loops over a client may overlap: a generator that is still referred to has not ended. What the
    client did before all of them is yielded to each, and done again after the last one.

    Args:
        holder: the object of the client that has what to do with a lost position, or None.
        name: the attribute in which it has it; there is no public way.
        none: its value for raising them.
    """
    resets = _kept(holder, "resets", _Resets)
    if not resets.loops:
        resets.before = getattr(holder, name, none)
    resets.loops += 1
    if resets.before != none:
        setattr(holder, name, none)
    try:
        yield resets.before
    finally:
        resets.loops -= 1
        if not resets.loops and resets.before != none:
            setattr(holder, name, resets.before)
