"""Arguments of poll loops, and what they check, of all clients."""

import threading
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Final, TypeVar

from assignor.adapters.membership import EmbeddedMember
from assignor.config import check_kind, is_deferred, refused
from assignor.embedding import LEFT_GROUP, MemberStopped, TaskStores
from assignor.errors import ConfigError
from assignor.option_fields import number

_Member = TypeVar("_Member", bound=EmbeddedMember)
_TIMEOUT: Final = number("a number, 0 or more", lambda value: value >= 0)


def stop_event(stop: threading.Event | None) -> threading.Event:
    """Return the event that ends a loop: the given one, or a new one.

    Raises:
        ConfigError: it is no event that a thread can wait for.
    """
    if stop is None:
        return threading.Event()
    wait = getattr(stop, "wait", None)
    can_wait = callable(getattr(stop, "is_set", None)) and callable(wait)
    if isinstance(stop, type) or not can_wait or is_deferred(wait):
        raise refused("stop", stop, "a threading.Event")
    return stop


def check_timeout(name: str, value: Any) -> None:
    """Check the timeout of each poll; kafka-python waits for ever with NaN.

    Raises:
        ConfigError: it is no number, below 0, or not finite.
    """
    check_kind(name, value, _TIMEOUT)


def check_stores(
    stores: object, listener: object, group_id: object, member: EmbeddedMember
) -> None:
    """Check the state stores of `run_tasks`.

    Args:
        stores: as a user gave them.
        listener: as a user gave it to the member.
        group_id: of the consumer.
        member: of the consumer.

    Raises:
        ConfigError: they are not the listener of this member, or of another group or directory.
    """
    if not isinstance(stores, TaskStores):
        raise refused("stores", stores, "the TaskStores that are the listener of the consumer")
    stores.check_follows(listener, group_id, member.directory)


def no_consumer(consumer: object, kind: str) -> ConfigError:
    """Return the error of a call that was given no consumer, or that of another client."""
    return ConfigError(
        f"{type(consumer).__name__} is not {kind}; use assignor.adapters.kafka_python, aiokafka or"
        " confluent (run_tasks, and consumer.commit), by the client that has made the consumer"
    )


def is_closed(consumer: Any) -> bool:
    """Return whether a consumer of kafka-python or aiokafka is closed."""
    return bool(getattr(consumer, "_closed", False))


def check_member(consumer: Any, assignor: EmbeddedMember) -> None:
    """Check that a member is one: it was not refused, and no earlier loop has left the group.

    Args:
        consumer: of `streams_consumer`, or the application's own.
        assignor: of the consumer.

    Raises:
        MemberStopped: the member takes no further part in the group.
        ListenerFailed: a method of its listener has raised since the last call.
    """
    assignor.raise_listener_error()
    if assignor.failed is not None:
        raise MemberStopped(f"{LEFT_GROUP}: {assignor.failed}")
    if hasattr(consumer, "assignor") and not consumer.subscription():
        why = "an earlier loop has ended with the cause; close this consumer, and make another"
        raise MemberStopped(f"{LEFT_GROUP}: {why}")


def check_offsets(next_offsets: object, *, with_metadata: bool = False) -> None:
    """Check what `commit_next` commits; None: all records that polls returned.

    Args:
        next_offsets: as a user gave them.
        with_metadata: whether the client takes pairs of an offset and its metadata, too.

    Raises:
        ConfigError: it is no mapping of partitions to offsets.
    """
    if next_offsets is None:
        return
    if not isinstance(next_offsets, Mapping):
        raise refused("next_offsets", next_offsets, "a mapping of partitions to offsets, or None")
    for partition, given in next_offsets.items():
        if not isinstance(partition, tuple) or [*map(type, partition)] != [str, int]:
            raise refused("a partition of next_offsets", partition, "a pair of topic and number")
        is_pair = with_metadata and isinstance(given, tuple) and len(given) > 0
        offset = given[0] if is_pair else given
        is_whole = isinstance(offset, Integral) and not isinstance(offset, bool)
        if not is_whole or offset < 0:
            raise refused(f"the offset of {partition}", offset, "a whole number, 0 or more")


def attached_member(
    kind: type[_Member], given: _Member | None, consumer: object, listed: Sequence[object]
) -> _Member:
    """Return the member that is attached to a consumer.

    Args:
        kind: the `StreamsAssignor` of the adapter.
        given: by the application; None: the one among `listed`.
        consumer: of the adapter's client.
        listed: its assignors.

    Raises:
        ConfigError: there is none, or it is not attached to this consumer.
    """
    if given is not None and not hasattr(given, "check_attached_to"):
        raise refused("assignor", given, "the StreamsAssignor of the consumer, or None")
    found = next((each for each in listed if isinstance(each, kind)), None)
    member = found if given is None else given
    if member is None:
        raise ConfigError(
            "this consumer has no StreamsAssignor; make it with streams_consumer, or with"
            " partition_assignment_strategy=[assignor]"
        )
    member.check_attached_to(consumer)
    return member
