"""Deleting topics."""

import time
from collections.abc import Collection
from typing import Any, Final

from kafka.admin import KafkaAdminClient
from kafka.errors import NoError, UnknownTopicOrPartitionError, for_code
from kafka.protocol.admin import DeleteTopicsRequest

from assignor.adapters.admin.client import Admin, BrokerError
from assignor.adapters.admin.facts import partition_counts

_LOOK_S: Final = 0.2
_NAMES_UNTIL: Final = 5
"""The last version that names topics, without their ids."""


def delete_topics(admin: Admin, names: Collection[str]) -> None:
    """Delete topics, and wait until the brokers show them no more; a missing one is no error.

    Raises:
        BrokerError: a topic cannot be deleted, or is still shown at the end of the time limit;
            those before it are deleted.
        NotAuthorized: as in `Admin.ask`.
    """
    left = sorted(names)
    if not left:
        return

    async def ask(client: KafkaAdminClient) -> None:
        request = DeleteTopicsRequest(
            topic_names=left, timeout_ms=admin.target.timeout_ms, max_version=_NAMES_UNTIL
        )
        response = await client._send_request_to_controller(  # noqa: SLF001 the client's own methods have no deadline
            request, get_errors_fn=_errors, raise_errors=False
        )
        for error in _errors(response):
            if error not in (NoError, UnknownTopicOrPartitionError):
                raise error

    admin.ask(f"delete {_few(left)}", ask)
    end = time.monotonic() + admin.target.timeout_ms / 1000
    while left := sorted(partition_counts(admin, left)):
        if time.monotonic() > end:
            raise BrokerError(
                f"{_few(left)} still exists {admin.target.timeout_ms / 1000:g} s after it was "
                "deleted: a broker that has a copy is down, or a client created it anew; see that "
                "all members are stopped, and try again"
            )
        time.sleep(_LOOK_S)


def _errors(response: Any) -> list[Any]:
    return [for_code(row.error_code) for row in response.responses]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"topic {names[0]}{more}"
