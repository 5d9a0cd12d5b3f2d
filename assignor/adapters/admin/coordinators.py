"""Requests about many groups: one for each coordinator, and each group has its own answer."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kafka.admin import KafkaAdminClient
from kafka.errors import BrokerResponseError, for_code

from assignor.adapters.admin.client import Admin, BrokerError, Refused, as_broker_error

GROUP_ID_NOT_FOUND: Final = 69
_Value = TypeVar("_Value")


class Row(NamedTuple):
    """What a coordinator answers about a group; `content` counts only without an error code.

    An answer that cannot be used is an exception as content.
    """

    group_id: str
    error_code: int
    content: Any


Question = Callable[[KafkaAdminClient, int, Sequence[str]], Awaitable[Iterable[Row]]]
"""Asks the coordinator with this node id about these groups."""


def ask_coordinators(
    admin: Admin, doing: str, group_ids: Sequence[str], question: Question
) -> dict[str, Any]:
    """Return the answer about each group; a `BrokerError` where the coordinator refuses one.

    A group whose coordinator moves is asked about again, until the time limit.

    Args:
        admin: the connected admin client.
        doing: verb phrase for messages, with `{}` for the group.
        group_ids: the groups.
        question: sends one request, or more to brokers that take one group at a time.

    Raises:
        BrokerError: as in `Admin.ask`.
    """
    found: dict[str, Any] = {}

    async def ask(client: KafkaAdminClient) -> None:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        rows: list[Row] = []
        try:
            left = [group_id for group_id in group_ids if group_id not in found]
            nodes = await client._find_coordinator_ids(left)  # noqa: SLF001 as above
            for node, own in _by_node(nodes):
                rows += await question(client, node, own)
            moved = _take(admin, doing, rows, found)
            if moved is not None:
                raise moved
        except BrokerResponseError:
            # The coordinator may have moved; look it up again at the next try.
            manager.cluster._coordinators.clear()  # noqa: SLF001 the client has no other way
            raise

    several = f"{len(group_ids)} groups"
    try:
        admin.ask(doing.format(group_ids[0] if len(group_ids) == 1 else several), ask)
    except Refused as error:
        # A coordinator that may not be looked up hides no other group.
        if len(group_ids) == 1:
            return {group_ids[0]: error}
        for group_id in set(group_ids) - found.keys():
            found |= ask_coordinators(admin, doing, [group_id], question)
    silent = BrokerError(f"{admin.target.spelled} gave no answer to: {doing.format('')}")
    return {group_id: found.get(group_id, silent) for group_id in group_ids}


def _take(
    admin: Admin, doing: str, rows: Iterable[Row], found: dict[str, Any]
) -> BrokerResponseError | None:
    """Add answers and refusals to `found`; return an error after which to ask again."""
    moved = None
    for row in rows:
        error = error_of(row.error_code)
        if error is None:
            found[row.group_id] = row.content
        elif getattr(error, "retriable", False):
            moved = error
        else:
            about = doing.format(row.group_id)
            found[row.group_id] = as_broker_error(error, about, admin.target)
    return moved


def answer_of(found: _Value | Exception) -> _Value:
    """Return an answer of `ask_coordinators`, or raise the error in its place."""
    if isinstance(found, Exception):
        raise found
    return found


def error_of(error_code: int) -> BrokerResponseError | None:
    """Return the client's error for an error code; None for 0."""
    return for_code(error_code)() if error_code else None


def _by_node(nodes: Mapping[str, int]) -> Iterator[tuple[int, list[str]]]:
    for node in sorted(set(nodes.values())):
        yield node, [group_id for group_id, own in nodes.items() if own == node]
