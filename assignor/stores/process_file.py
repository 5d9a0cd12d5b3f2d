"""The file with the identity of a process.

Format 1 is Kafka Streams' JSON, so that a JVM member can take over the directory. Format 2 adds
fields that Kafka Streams skips. Format 3 has a checksum.
"""

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from assignor.stores.errors import store_errors
from assignor.stores.files import seal, unseal
from assignor.stores.reading import strict_json, whole_number

PROCESS_LIMIT: Final = 4096
PROCESS_REMEDY: Final = (
    "restore it from a copy to keep the identity, or delete it to start as a new process"
)
_MAGIC: Final = b"SRPROC01"
_MADE_SINCE: Final = 2
_VERSION_MAX: Final = (1 << 31) - 1
_SEALED_SINCE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """The identity of a process.

    Attributes:
        process_id: process id, which stays the same after a restart.
        made_at_ms: milliseconds since 1970 when it was created; None in format 1.
        remembered_version: assignment version that the group last agreed on; None in format 1 or
            before the first agreement.
    """

    process_id: UUID
    made_at_ms: int | None = None
    remembered_version: int | None = None


def process_bytes(record: ProcessRecord, file_format: int) -> bytes:
    """Return the bytes of the file."""
    fields: dict[str, Any] = {"processId": str(record.process_id)}
    if file_format >= _MADE_SINCE:
        fields |= {"madeAtMs": record.made_at_ms, "rememberedVersion": record.remembered_version}
    body = json.dumps(fields).encode()
    return seal(_MAGIC, body) if file_format >= _SEALED_SINCE else body


def read_process(data: bytes, *, name: str) -> ProcessRecord:
    """Return the identity in a file of any known format.

    Raises:
        StoreError: the file is damaged.
    """
    with store_errors(name, problem="has no valid process id", remedy=PROCESS_REMEDY):
        body = unseal(_MAGIC, data, name=name) if data[:8] == _MAGIC else data
        given = strict_json(body)
        made, remembered = given.get("madeAtMs"), given.get("rememberedVersion")
        return ProcessRecord(
            process_id=UUID(given["processId"]),
            made_at_ms=None if made is None else whole_number(made, what="madeAtMs"),
            remembered_version=(
                None
                if remembered is None
                else whole_number(remembered, what="rememberedVersion", most=_VERSION_MAX)
            ),
        )
