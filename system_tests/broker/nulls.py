"""Null values in request fields that are not nullable.

kafka-python's decoder accepts them. A null id is answered with Kafka's error code. Any other null
makes the request invalid and closes its connection.
"""

from dataclasses import dataclass
from typing import Any

INVALID_TOPIC_EXCEPTION = 17
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25

_ERROR_BY_FIELD = {
    "group_id": INVALID_GROUP_ID,
    "groups.group_id": INVALID_GROUP_ID,
    "groups[]": INVALID_GROUP_ID,
    "groups_names[]": INVALID_GROUP_ID,
    "key": INVALID_GROUP_ID,
    "coordinator_keys[]": INVALID_GROUP_ID,
    "member_id": UNKNOWN_MEMBER_ID,
    "assignments.member_id": UNKNOWN_MEMBER_ID,
    "members.member_id": UNKNOWN_MEMBER_ID,
    "topics.name": INVALID_TOPIC_EXCEPTION,
    "topics.topic": INVALID_TOPIC_EXCEPTION,
    "topic_data.name": INVALID_TOPIC_EXCEPTION,
    "topic_names[]": INVALID_TOPIC_EXCEPTION,
}

# These types cannot be null on the wire; the decoder returns None for a value of zeros.
_ZERO_IS_NONE = ("uuid", "[]uuid")


@dataclass(frozen=True, slots=True)
class NullField:
    """A field that is null although it is not nullable.

    Attributes:
        name: path of the field, for example `topics.name`; `groups[]` is an element.
        error: Kafka's error code for it; None if there is none.
    """

    name: str
    error: int | None


def first_null(body: Any, version: int) -> NullField | None:
    """Return the first null field of a decoded request that is not nullable, or None."""
    name = _null_in(body, type(body)._struct, version, "")  # noqa: SLF001 the schema of a message
    return None if name is None else NullField(name, _ERROR_BY_FIELD.get(name))


def _null_in(item: Any, struct: Any, version: int, prefix: str) -> str | None:
    for field in struct.untagged_fields(version):
        if field.type_str in _ZERO_IS_NONE:
            continue
        name = f"{prefix}{field.name}"
        value = getattr(item, field.name)
        if value is None:
            if not field.nullable_for_version_q(version):
                return name
        elif field.is_struct_array():
            for row in value:
                found = _null_in(row, field, version, f"{name}.")
                if found is not None:
                    return found
        elif field.is_array() and None in value:
            return f"{name}[]"
    return None
