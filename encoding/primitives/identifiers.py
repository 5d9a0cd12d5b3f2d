"""Basic values of the wire: task, topic partition, host, sentinels, error codes, forms of a view.

They are plain tuples, because a leader creates a million of them.
"""

import re
from enum import IntEnum, StrEnum
from typing import NamedTuple

RUNNING = -2
"""Offset sum of a task that is active and running on the member."""

UNKNOWN_OFFSET_SUM = -3
"""Offset sum of a task whose state the member has, with unknown offsets."""

NO_REBALANCE = 2**63 - 1
"""``next_rebalance_ms`` of an assignment without a followup rebalance."""

UNKNOWN_VERSION = -1
"""Latest supported version of a peer that wrote version 1 or 2, which do not carry it."""

_TASK = re.compile(r"(?:(?P<name>.+)__)?(?P<first>-?[0-9]+)_(?P<second>-?[0-9]+)", re.DOTALL)


class AssignorError(IntEnum):
    """Error codes of both blobs (KAFKA-5037, KIP-671)."""

    NONE = 0
    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    VERSION_PROBING = 2
    ASSIGNMENT_ERROR = 3
    SHUTDOWN_REQUESTED = 4


class ViewForm(StrEnum):
    """Forms in which an answer can carry the routing view, the largest first."""

    FULL = "full"
    DELTA = "delta"
    REFERENCE = "reference"
    NONE = "none"


class TaskId(NamedTuple):
    """A task: one partition of one subtopology, in Kafka's notation ``0_1``.

    ``topology_name`` is set for named topologies only (versions 10 and up); ``None`` and the empty
    name are the same on the wire.
    """

    subtopology: int
    partition: int
    topology_name: str | None = None

    def __str__(self) -> str:
        plain = f"{self.subtopology}_{self.partition}"
        return f"{self.topology_name}__{plain}" if self.topology_name else plain

    @classmethod
    def parse(cls, text: str) -> "TaskId":
        """The task of ``0_1`` or ``name__0_1``; ``ValueError`` for any other text."""
        match = _TASK.fullmatch(text)
        if match is None:
            message = f"not a task id: {text!r}; write subtopology_partition, for example 0_1"
            raise ValueError(message)
        return cls(int(match["first"]), int(match["second"]), match["name"])


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class HostInfo(NamedTuple):
    """Endpoint of a member for interactive queries: host and port."""

    host: str
    port: int


def task_order(task: TaskId) -> tuple[int, int, str]:
    """Sort key of tasks: subtopology, partition, then name; tasks without a name first."""
    return (task.subtopology, task.partition, task.topology_name or "")
