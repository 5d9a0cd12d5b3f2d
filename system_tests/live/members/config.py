"""What a member process is told: one line of JSON on its standard input."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

CLIENT_SETTINGS: Final[dict[str, Any]] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
}
"""Of every consumer in an experiment: a member commits what it has processed, and is quick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """Everything a member process needs to know.

    Attributes:
        name: lane of the trace; also the client id.
        release: the release to emulate; `upgrade_from` as in Kafka Streams' configuration.
        rebalance_protocol: "eager" or "cooperative", as the adapter takes it.
        process_id: kept over restarts, as Kafka Streams keeps it in its state directory.
        group_instance_id: of a static member, or None.
        supervised: its client goes back to its bootstrap servers when all brokers are gone.
        hold_back: the group starts held at Kafka's newest version and looks for its level.
    """

    name: str
    bootstrap_servers: str
    group_id: str
    topic: str
    release: str
    upgrade_from: str | None
    rebalance_protocol: str
    process_id: str
    group_instance_id: str | None
    supervised: bool
    hold_back: bool
    session_timeout_ms: int
    heartbeat_interval_ms: int

    def to_json(self) -> str:
        """Write one line."""
        return json.dumps(asdict(self))

    def consumer_settings(self, assignor: object) -> dict[str, Any]:
        """What the member's consumer is told, whichever client it is of."""
        return {
            **CLIENT_SETTINGS,
            "bootstrap_servers": self.bootstrap_servers,
            "group_id": self.group_id,
            "client_id": self.name,
            "group_instance_id": self.group_instance_id,
            "partition_assignment_strategy": [assignor],
            "session_timeout_ms": self.session_timeout_ms,
            "heartbeat_interval_ms": self.heartbeat_interval_ms,
        }

    @classmethod
    def from_json(cls, line: str) -> "MemberConfig":
        """Read one line.

        Raises:
            ValueError: not JSON, or not exactly the attributes of a member.
        """
        names = {field.name for field in fields(cls)}
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or set(found) != names:
            raise ValueError(f"a member's configuration is one JSON object with {sorted(names)}")
        return cls(**found)
