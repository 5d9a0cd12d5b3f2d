"""The options of one soak, each declared once, and the members that live through it."""

from dataclasses import dataclass, field

from system_tests.live import CLIENT, CLIENTS, MIXED, MIXED_CLIENTS, member_names
from system_tests.option_fields import (
    MAX_MEMBERS,
    RATE,
    SEED,
    SETTLE_TIMEOUT,
    broker_text,
    option,
    session_timeout_text,
)

NATIVE = "native"
"""The release of this program, which the group begins with and long-lived members keep."""
EMBEDDED = "embedded"
"""What ``--broker`` calls the embedded broker."""
SPARE_LANES = 2
"""How many members may be added to those that the group begins with."""
_RETENTION_S = 180.0
WARM_UP_S = _RETENTION_S + 60.0
"""How long processes grow in any case: a broker fills up, and each loads what it needs."""
_BYTES_PER_RECORD = 90.0
_RETENTION_MIN = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOptions:
    """The numbers of one soak; times in the unit of their name.

    Attributes:
        broker: the release of a real Kafka to start, or None for the embedded one.
        client: the library that members run on, or "mixed".
        heartbeat_ms: interval between the heartbeats of a member.
        kill_every_s: longest time between two kills, plus that of one disturbance; 0: any.
        calm_s: how long the group is left alone after it has settled, at least; twice that at most.
        settle_timeout_s: how long it may take to settle.
        quiet_ms: how long a group must not change before it counts as settled.
        sample_s: between two samples of memory and descriptors.
    """

    minutes: float = field(
        default=60.0,
        metadata=option(
            "Duration; a disturbance that has begun is finished.", least=0.1, most=60 * 24 * 30
        ),
    )
    members: int = field(
        default=4,
        metadata=option(
            "Processes; up to two more are added and removed.",
            least=3,
            most=MAX_MEMBERS - SPARE_LANES,
        ),
    )
    partitions: int = field(
        default=6, metadata=option("Partitions of the source topic.", least=1, most=200)
    )
    rate: float = field(default=200.0, metadata=RATE)
    seed: int = field(default=7, metadata=SEED)
    broker: str | None = field(
        default=None, metadata=broker_text("embedded|kafka:RELEASE", none=EMBEDDED)
    )
    client: str = field(default=CLIENTS[0], metadata=CLIENT)
    session_timeout_ms: int = field(default=6000, metadata=session_timeout_text(least=2000))
    heartbeat_ms: int = 300
    calm_s: float = field(
        default=4.0,
        metadata=option(
            "Minimum seconds between disturbances; the maximum is twice as many.",
            flag="--calm",
            least=0,
            most=3600,
        ),
    )
    kill_every_s: float = field(
        default=0.0,
        metadata=option(
            "Seconds without a kill after which the next disturbance kills a member or the leader, "
            "in turn; 0: only as often as the schedule does.",
            flag="--kill-every",
            metavar="SECONDS",
            least=0,
            most=3600,
        ),
    )
    settle_timeout_s: float = field(default=60.0, metadata=SETTLE_TIMEOUT)
    quiet_ms: float = 1000.0
    sample_s: float = 5.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members; the last `SPARE_LANES` do not run at first."""
        return member_names(self.members + SPARE_LANES)

    @property
    def long_lived(self) -> tuple[str, ...]:
        """Members that are never bounced or killed: one on each client.

        They are paused only while one of them leads: a leader that is never removed would lead for
        ever.
        """
        return self.names[: len(MIXED_CLIENTS) if self.client == MIXED else 1]

    @property
    def retention_bytes(self) -> int:
        """How much of a partition the broker keeps: three minutes of records."""
        per_partition = self.rate / self.partitions * _BYTES_PER_RECORD * _RETENTION_S
        return max(_RETENTION_MIN, round(per_partition))
