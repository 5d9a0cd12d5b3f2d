"""The configuration of a member process: one line of JSON on its standard input."""

from dataclasses import dataclass
from typing import Any, Final

from system_tests.live.plan import Stage

CLIENT_SETTINGS: Final[dict[str, Any]] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
}
"""Consumer settings of all members: a member commits what it has processed, and fetches often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """What all members of one group have in common.

    Attributes:
        topic: of the records; a partition of it is a task.
        static: members carry their name as group.instance.id.
        supervised: clients go back to their bootstrap servers when all brokers are gone.
        hold_back: the group is held at Kafka's newest version and polls its level.
    """

    bootstrap_servers: str
    group_id: str
    topic: str
    session_timeout_ms: int
    heartbeat_ms: int
    static: bool = False
    supervised: bool = False
    hold_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """Everything that a member process needs.

    Attributes:
        name: of the member in the trace; also its client id.
        process_id: the same after a restart, as Kafka Streams keeps it in its state directory.
        stage: the release to emulate, with its pin and its rebalance protocol.
        group: what it has in common with the other members.
    """

    name: str
    process_id: str
    stage: Stage
    group: GroupConfig

    def consumer_settings(self, assignor: object) -> dict[str, Any]:
        """Return the settings of the member's consumer, the same for each client library."""
        return {
            **CLIENT_SETTINGS,
            "bootstrap_servers": self.group.bootstrap_servers,
            "group_id": self.group.group_id,
            "client_id": self.name,
            "group_instance_id": self.name if self.group.static else None,
            "partition_assignment_strategy": [assignor],
            "session_timeout_ms": self.group.session_timeout_ms,
            "heartbeat_interval_ms": self.group.heartbeat_ms,
        }
