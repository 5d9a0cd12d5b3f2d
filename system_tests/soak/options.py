"""The numbers of one soak, and the members that live through it."""

from dataclasses import dataclass

from system_tests.live import CLIENTS, MIXED, LiveOptions, member_names

NATIVE = "native"
"""The release of this program, which the group begins with and long-lived members keep."""
SPARE_LANES = 2
"""How many members may come on top of those that it begins with."""
_RETENTION_S = 180.0
WARM_UP_S = _RETENTION_S + 60.0
"""How long processes grow in any case: a broker fills up, and each loads what it needs."""
_BYTES_PER_RECORD = 90.0
_RETENTION_MIN = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOptions:
    """What the operator asked for; times in the unit of their name.

    Attributes:
        broker: the release of a real Kafka to start, or None for the embedded one.
        client: the library that members run on, or "mixed".
        calm_s: how long the group is left alone after it has settled, at least; twice that at most.
        settle_timeout_s: how long it may take to settle.
        quiet_ms: how long a group must stay as it is to pass for settled.
        sample_s: between two looks at memory and descriptors.
    """

    minutes: float = 60.0
    members: int = 4
    partitions: int = 6
    rate: float = 200.0
    seed: int = 7
    broker: str | None = None
    client: str = CLIENTS[0]
    session_timeout_ms: int = 6000
    heartbeat_ms: int = 300
    calm_s: float = 4.0
    settle_timeout_s: float = 60.0
    quiet_ms: float = 1000.0
    sample_s: float = 5.0

    @property
    def names(self) -> tuple[str, ...]:
        """All lanes; the last ones are spare."""
        return member_names(self.members + SPARE_LANES)

    @property
    def long_lived(self) -> tuple[str, ...]:
        """Members that are never bounced or killed: one on each client.

        Only where one leads it may be paused, since a leader that is never put out leads for ever.
        """
        return self.names[: len(CLIENTS) if self.client == MIXED else 1]

    @property
    def retention_bytes(self) -> int:
        """How much of a partition the broker keeps: three minutes of records."""
        per_partition = self.rate / self.partitions * _BYTES_PER_RECORD * _RETENTION_S
        return max(_RETENTION_MIN, round(per_partition))

    def as_live(self) -> LiveOptions:
        """Say it to those who start members and write records."""
        return LiveOptions(
            members=self.members,
            client=self.client,
            partitions=self.partitions,
            rate=self.rate,
            seed=self.seed,
            broker=self.broker,
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_ms=self.heartbeat_ms,
            settle_timeout_s=self.settle_timeout_s,
            quiet_ms=self.quiet_ms,
        )
