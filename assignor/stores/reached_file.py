"""The file with the memory of reached versions of the topology; see `probing.topologies`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from assignor.stores.errors import StoreError, store_errors
from assignor.stores.files import read_sealed, write_sealed
from assignor.stores.reading import strict_json, whole_number
from probing.topologies import HIGHEST_EPOCH, MOST_ENTRIES, Reached, newest_memory

REACHED_NAME: Final = "reached-topologies"
REACHED_LIMIT: Final = 64 * 1024
_MAGIC: Final = b"SRREACH1"
_FORM_BYTES: Final = 8
_HIGHEST_VERSION: Final = 2**31 - 1
_REMEDY: Final = (
    "restore it from a copy, or delete it if the other members of the group are running: they"
    " remember the same"
)


def read_reached(directory: Path) -> dict[bytes, Reached]:
    """Return the memory in a state directory; empty if there is none.

    Raises:
        StoreError: the file is damaged, or has an epoch or a version that no leader believes.
    """
    path = directory / REACHED_NAME
    with store_errors(str(path), problem="has no valid memory of topologies", remedy=_REMEDY):
        data = read_sealed(path, _MAGIC, limit=REACHED_LIMIT)
        rows = [] if data is None else strict_json(data)
        if not isinstance(rows, list) or len(rows) > MOST_ENTRIES:
            raise StoreError(f"{path} has no valid memory of topologies; {_REMEDY}")
        return newest_memory(
            {
                _form(form): Reached(
                    whole_number(epoch, what="epoch", most=HIGHEST_EPOCH - 1),
                    1 + whole_number(version - 1, what="version - 1", most=_HIGHEST_VERSION - 1),
                )
                for form, epoch, version in rows
            }
        )


def _form(text: str) -> bytes:
    form = bytes.fromhex(text)
    if len(form) != _FORM_BYTES:
        raise ValueError(f"a form has {len(form)} bytes instead of {_FORM_BYTES}")
    return form


def write_reached(directory: Path, memory: Mapping[bytes, Reached]) -> None:
    """Write the memory into a state directory.

    Raises:
        StoreError: the file cannot be written.
    """
    rows = [[form.hex(), *memory[form]] for form in sorted(memory)]
    write_sealed(directory / REACHED_NAME, _MAGIC, json.dumps(rows).encode())
