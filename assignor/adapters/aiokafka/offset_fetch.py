"""The error of a whole OffsetFetch, which aiokafka takes for "nothing is committed".

From version 2 on a broker answers an error of the group with no topics (KIP-88). aiokafka reads
those of partitions only, so that reading would begin at `auto_offset_reset`: at the end, past
records that nobody has processed, or at the begin (pykafka 958, librdkafka 5586).
"""

from typing import Any

from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForGroupError,
    for_code,
)
from aiokafka.protocol.commit import OffsetFetchRequest

from assignor.embedding import fatal_reason
from assignor.logs import line_logger

_log = line_logger(__name__)

_MOVED = (GroupCoordinatorNotAvailableError, NotCoordinatorForGroupError)


def raise_group_errors(client: Any, send_name: str = "_send_req") -> None:
    """Have a client raise the error of a whole OffsetFetch, as it raises that of a partition.

    Its callers ask again, unless the error is fatal.

    Args:
        client: a coordinator, or an admin client.
        send_name: its method that sends a request and returns the response.
    """
    send = getattr(client, send_name, None)
    if send is None or getattr(send, "raises_group_errors", False):
        return
    logged: set[int] = set()

    async def checked(*args: Any) -> Any:
        response = await send(*args)
        if getattr(response, "API_KEY", None) == OffsetFetchRequest.API_KEY:
            code = getattr(response, "error_code", 0)  # version 1 has none
            logged.intersection_update({code})
            if code:
                _raise(client, code, logged)
        return response

    checked.raises_group_errors = True  # type: ignore[attr-defined] # it is installed once
    setattr(client, send_name, checked)


def _raise(client: Any, code: int, logged: set[int]) -> None:
    error = for_code(code)()
    if isinstance(error, _MOVED) and hasattr(client, "coordinator_dead"):
        client.coordinator_dead()
    if error.retriable or fatal_reason(error) is not None:
        raise error
    if code not in logged:
        logged.add(code)
        _log.warning("committed offsets cannot be read (error %d); they are asked for again", code)
    again = KafkaError(f"error {code} of the whole group")
    again.retriable = True  # for aiokafka, which would not ask again after this one
    raise again
