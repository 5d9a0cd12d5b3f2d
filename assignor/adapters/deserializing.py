"""Records deserialized where they are processed, so that their bytes are known if that fails."""

import dataclasses
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from assignor.config import refused
from assignor.embedding import Handler, TaskState, UnreadableRecord, error_text, is_interrupt

_LEAVE_OUT: Final = "have on_bad_record return BadRecordAction.SKIP or DeadLetter(TOPIC) for it"


def deserialized(client: MutableMapping[str, Any], handle: Handler) -> Handler:
    """Return a function that deserializes records as the client would, which then does not.

    Args:
        client: settings of the consumer; its deserializers are removed.
        handle: called with each record, of kafka-python or aiokafka, and the stores of its task.
    """
    names = ("key", "value")
    given = {name: client.pop(f"{name}_deserializer", None) for name in names}
    found = {name: _deserializer(name, each) for name, each in given.items() if each is not None}
    if not found:
        return handle

    def run(record: Any, state: TaskState) -> object:
        try:
            new = {
                name: deserialize(record.topic, record.headers, getattr(record, name))
                for name, deserialize in found.items()
            }
        except Exception as error:
            where = (record.topic, record.partition, record.offset)
            if is_interrupt(error):
                raise
            raise UnreadableRecord(*where, error_text(error), leave_out=_LEAVE_OUT) from error
        is_tuple = hasattr(record, "_replace")
        return handle(
            record._replace(**new) if is_tuple else dataclasses.replace(record, **new), state
        )

    return run


def _deserializer(name: str, given: Any) -> Callable[[str, Any, Any], Any]:
    """Return a function of topic, headers and data; raise ConfigError."""
    found: Callable[[str, Any, Any], Any] | None = getattr(given, "deserialize", None)
    if callable(found) and not isinstance(given, type):
        return found
    if not callable(given):
        wanted = "a function or a kafka.serializer.Deserializer"
        raise refused(f"{name}_deserializer", given, wanted)
    return lambda _topic, _headers, data: given(data)
