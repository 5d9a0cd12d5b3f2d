"""Bytes of the consumer protocol that a client would raise for, replaced before it decodes them."""

from collections.abc import Callable, Collection
from typing import Any

from assignor.rebalance import safe_consumer_subscription
from encoding import shown

Decode = Callable[[bytes], Any]
"""The client's own decoder; it may raise anything."""


def readable_metadata(data: bytes, decode: Decode) -> bytes:
    """Return metadata that the client can decode, whatever the member wrote."""
    safe = safe_consumer_subscription(data)
    try:
        decode(safe)
    except Exception:  # noqa: BLE001 whatever the decoder raises, the bytes are not usable
        return safe_consumer_subscription(b"")
    return safe


def unusable_answer(answer: bytes, decode: Decode, subscribed: Collection[str] | None) -> str:
    """Return why the client cannot take an answer, or "".

    Args:
        answer: as the leader sent it.
        decode: of an assignment; what it returns has `partitions()`.
        subscribed: topics of the consumer, or None where they are not known.
    """
    try:
        topics = {str(partition.topic) for partition in decode(answer).partitions()}
    except Exception as error:  # noqa: BLE001 whatever the decoder raises, the bytes are not usable
        what = shown(f"{type(error).__name__}: {error}")
        return f"the leader's answer of {len(answer)} bytes is no assignment ({what})"
    strange = sorted(topics.difference(topics if subscribed is None else subscribed))
    if not strange:
        return ""
    return (
        f"the leader assigned partitions of {shown(', '.join(strange))}, which this consumer is"
        " not subscribed to; subscribe all members to topology.source_topics(application_id)"
    )
