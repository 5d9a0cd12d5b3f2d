"""The application that JVM members and members of ours run in one group: words are counted.

Subtopology 0 reads the words and writes each under itself as key to the repartition topic;
subtopology 1 counts them in a store with a changelog, and writes every count to `count-of-words`.
Kafka Streams names the internal topics after the store, and so does our topology.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from assignor import Topology

STORE = "counts"
POISON = "poison"
"""The word that no JVM member survives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealConfig:
    """What one member process is told: one line of JSON on its standard input.

    Attributes:
        name: client id, and the name of the member in a test.
        release: of Kafka Streams, or "native".
        process_id: of a member of ours; a JVM member keeps its own in `state_dir`.
        leaves_group: whether a JVM member says so when it stops, as Kafka Streams by itself does
            not; without it the group waits for the session to end.
        start_version: of a member of ours, as `StreamsAssignor` takes it.
        cooperative: whether a member of ours gives up only what moves (KIP-429).
        hold_back: whether a member of ours holds its group at version 11.
        when_failed: what a JVM member of 2.8 or newer does when a thread dies: a
            `StreamThreadExceptionResponse`.
        settings: further settings, Kafka's names and values as text.
    """

    name: str
    release: str
    bootstrap_servers: str
    application_id: str
    state_dir: str
    process_id: str
    upgrade_from: str | None = None
    endpoint: str | None = None
    session_timeout_ms: int = 6000
    heartbeat_interval_ms: int = 300
    num_standby_replicas: int = 0
    leaves_group: bool = True
    start_version: str | None = None
    cooperative: bool = False
    hold_back: bool = False
    when_failed: str = "SHUTDOWN_CLIENT"
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_native(self) -> bool:
        """Whether this is a member of ours."""
        return self.release == "native"

    def to_json(self) -> str:
        """Write one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "RealConfig":
        """Read one line.

        Raises:
            ValueError: not JSON, or not the attributes of a member.
        """
        found = json.loads(line)
        names = {one.name for one in fields(cls)}
        if not isinstance(found, dict) or set(found) != names:
            raise ValueError(f"a member's configuration is one JSON object with {sorted(names)}")
        return cls(**found)


def words_topic(application_id: str) -> str:
    """Name the topic that is counted."""
    return f"{application_id}-words"


def counts_topic(application_id: str) -> str:
    """Name the topic that every count is written to."""
    return f"{application_id}-out"


def repartition_topic(application_id: str) -> str:
    """Name the topic between the two subtopologies."""
    return f"{application_id}-{STORE}-repartition"


def changelog_topic(application_id: str) -> str:
    """Name the changelog of the counts."""
    return f"{application_id}-{STORE}-changelog"


def word_count(application_id: str) -> Topology:
    """Build the topology as a member of ours sees it; ids are those of Kafka Streams."""
    return (
        Topology()
        .add_repartition_topic(STORE)
        .add_source("0-words", topics=[words_topic(application_id)])
        .add_sink("0-repartition", topic=STORE, parents=["0-words"])
        .add_source("1-repartition", topics=[STORE])
        .add_processor("1-count", parents=["1-repartition"])
        .add_state_store(STORE, processors=["1-count"])
        .add_sink("1-counts", topic=counts_topic(application_id), parents=["1-count"])
    )
