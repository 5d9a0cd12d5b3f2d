"""Names of members, the order of a bounce, and the client library of each member."""

import random
import re
from collections.abc import Sequence

CLIENTS = ("kafka-python", "aiokafka", "confluent")
MIXED = "mixed"
MIXED_CLIENTS = ("kafka-python", "aiokafka")
"""Between these "mixed" alternates."""

NAMED_ORDERS = ("leader-last", "leader-first", "random")


class OrderError(ValueError):
    """The order, or the member to kill, is unknown; the message lists what is accepted."""


def member_names(count: int) -> tuple[str, ...]:
    """Return the names of the members: a, b, c, ...

    >>> member_names(3)
    ('a', 'b', 'c')
    """
    return tuple(chr(ord("a") + index) for index in range(count))


def client_of(name: str, client: str) -> str:
    """Return the client library of a member; "mixed" alternates between kafka-python and aiokafka.

    >>> [client_of(name, "mixed") for name in member_names(3)]
    ['kafka-python', 'aiokafka', 'kafka-python']
    """
    if client != MIXED:
        return client
    return MIXED_CLIENTS[(ord(name) - ord("a")) % len(MIXED_CLIENTS)]


def check_order(order: str, members: Sequence[str]) -> None:
    """Check that an order is a named one or names every member once.

    Raises:
        OrderError: lists what is accepted.
    """
    if order not in NAMED_ORDERS:
        _listed(order, members)


def bounce_order(
    order: str, members: Sequence[str], *, leader: str | None, rng: random.Random
) -> tuple[str, ...]:
    """Return the members in the order in which they are bounced.

    Args:
        order: "leader-last", "leader-first", "random", or members by number or name ("1,2,0").
        members: all names.
        leader: of the group as the bounce begins.
        rng: the random generator of the experiment.

    >>> bounce_order("leader-last", ["a", "b", "c"], leader="a", rng=random.Random(7))[-1]
    'a'
    """
    if order not in NAMED_ORDERS:
        return _listed(order, members)
    shuffled = list(members)
    rng.shuffle(shuffled)
    if order == "leader-last":
        shuffled.sort(key=lambda member: member == leader)
    elif order == "leader-first":
        shuffled.sort(key=lambda member: member != leader)
    return tuple(shuffled)


def find_member(text: str, members: Sequence[str]) -> str:
    """Find a member by its name, or by its number from 0.

    Raises:
        OrderError: lists the members.
    """
    text = text.strip()
    if text in members:
        return text
    if re.fullmatch(r"\d{1,3}", text) and int(text) < len(members):
        return members[int(text)]
    raise OrderError(
        f"there is no member {text!r}; members are {', '.join(members)}, or 0 to {len(members) - 1}"
    )


def _listed(order: str, members: Sequence[str]) -> tuple[str, ...]:
    try:
        found = tuple(find_member(part, members) for part in order.split(","))
    except OrderError as error:
        raise OrderError(f"order {order!r}: {error}; or use {', '.join(NAMED_ORDERS)}") from None
    if sorted(found) != sorted(members):
        raise OrderError(
            f"order {order!r} must name each of {', '.join(members)} once, "
            f"or be one of {', '.join(NAMED_ORDERS)}"
        )
    return found
