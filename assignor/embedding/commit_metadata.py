"""What members of a group commit with an offset, and how it is told from what operators commit."""

import base64
from typing import Final

COMMIT_METADATA: Final = base64.b64encode(b"\x01" + b"\xff" * 8).decode()
"""Metadata of an offset that a member commits: that of Kafka Streams for an unknown time."""
# Versions of the metadata that members of Kafka Streams commit, the first byte.
_VERSIONS: Final = frozenset({b"\x01", b"\x02"})


def is_members_commit(metadata: str | None) -> bool:
    """Return whether a member of the group has committed an offset with this metadata.

    Members of this project and of Kafka Streams write a version and a time; operators' tools write
    nothing.

    >>> is_members_commit(COMMIT_METADATA), is_members_commit("")
    (True, False)
    """
    try:
        return base64.b64decode(metadata or "", validate=True)[:1] in _VERSIONS
    except ValueError:
        return False
