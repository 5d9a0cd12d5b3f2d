"""The file that a process's identity lies in.

Format 1 is the JSON that Kafka Streams writes, so that a JVM member can take a directory over, and
2 adds fields that it skips; format 3 is sealed.
"""

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from assignor.stores.errors import understood
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
    """Who a process is.

    Attributes:
        process_id: the same after a restart.
        made_at_ms: when it was made, None where the format does not tell.
        remembered_version: assignment version last agreed, None where none was, or is told.
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
        StoreError: it is broken.
    """
    with understood(name, problem="names no process", remedy=PROCESS_REMEDY):
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
