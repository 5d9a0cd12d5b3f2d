"""The word count application that JVM members and native members run in one group.

Subtopology 0 reads words and writes each to the repartition topic, with the word as key.
Subtopology 1 counts them in a store with a changelog, and writes every count to the output topic.
Internal topics are named after the store, as in Kafka Streams.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor import Topology

STORE = "counts"
POISON = "poison"
"""The word that makes JVM members fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealConfig:
    """The configuration of a member process: one line of JSON on its standard input.

    Attributes:
        name: client id, and name of the member in a test.
        release: release of Kafka Streams, or "native".
        process_id: process id of a native member; a JVM member has its own in `state_dir`.
        leaves_group: a JVM member sends LeaveGroup when it stops (not the default of Kafka
            Streams); otherwise its session has to expire.
        start_version: `start_version` of a native member's `StreamsAssignor`.
        cooperative: a native member uses cooperative rebalancing (KIP-429).
        hold_back: a native member holds its group at version 11.
        when_failed: reaction of a JVM member, from 2.8 on, to a failed thread: a
            `StreamThreadExceptionResponse`.
        topology: what a JVM member runs: a name of `system_tests.support.jvm.topologies`.
        on_disk: a JVM member has its store on disk (RocksDB), else in memory.
        settings: further Kafka settings, by name, values as text.
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
    topology: str = "words"
    on_disk: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_native(self) -> bool:
        """Whether this is a native member."""
        return self.release == "native"


def words_topic(application_id: str) -> str:
    """Return the name of the input topic."""
    return f"{application_id}-words"


def left_topic(application_id: str) -> str:
    """Return the name of the input topic of a table, the left one of a join."""
    return f"{application_id}-left"


def right_topic(application_id: str) -> str:
    """Return the name of the input topic of the right table of a join."""
    return f"{application_id}-right"


def counts_topic(application_id: str) -> str:
    """Return the name of the output topic."""
    return f"{application_id}-out"


def repartition_topic(application_id: str) -> str:
    """Return the name of the topic between the two subtopologies."""
    return f"{application_id}-{STORE}-repartition"


def changelog_topic(application_id: str) -> str:
    """Return the name of the changelog topic."""
    return f"{application_id}-{STORE}-changelog"


def word_count(application_id: str) -> Topology:
    """Return the topology of a native member; its subtopology ids are those of Kafka Streams."""
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
