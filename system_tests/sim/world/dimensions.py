"""Dimensions of a simulated group: cooperative members, endpoints, routing views, standby copies.

In a group without any of them native members are eager, none serves queries, and there are no
standby copies. Dimensions are drawn from a random generator of their own, so that the same seed
bounces the same releases with and without them.
"""

import random
from dataclasses import dataclass
from typing import Final, Self

from assignor import AssignmentConfig
from system_tests.sim.world.disk import StateRates
from system_tests.trace import lane_name

_PROBING_MS = 60_000
_HALF = 0.5
_RESTORES = (50_000, 2_000, 400)
_RECORD_LIMITS = (None, None, None, 2_500, 4_000)
_HOSTS = ("{}.example", "{}", "{}." + "rack-7.zone-b." * 8 + "example", "2001:db8::{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """What a group has besides members, threads and partitions.

    Attributes:
        cooperative: native members keep what does not move through a rebalance (KIP-429), unless a
            pin up to 2.3 keeps them eager; JVM members go by their release and pin in any case.
        endpoints: ``host:port`` of each process, None for one that serves no queries; empty: none.
        moves: a process that is started again has another port; dynamic members only.
        views: a native leader holds the routing view that it got as a member, so that others are
            sent deltas and references; without, every view is sent in full.
        record_limit: bytes of the group's record; None: what a broker takes by default. Routing
            that does not fit is left out.
        standbys: num.standby.replicas.
        restore: records a second that a process reads of each changelog; None: two seconds are
            enough for all. A copy that is slow is warmed up over several probing rebalances.
    """

    cooperative: bool = False
    endpoints: tuple[str | None, ...] = ()
    moves: bool = False
    views: bool = False
    record_limit: int | None = None
    standbys: int = 0
    restore: int | None = None

    @property
    def is_default(self) -> bool:
        """Whether the group has no dimensions."""
        return self == NO_DIMENSIONS

    @property
    def routes(self) -> bool:
        """Whether any process serves queries."""
        return any(self.endpoints)

    @property
    def has_copies(self) -> bool:
        """Whether the group has standby copies or warm-ups to check."""
        return bool(self.standbys or self.restore)

    def endpoint_of(self, process: int, *, starts: int) -> str | None:
        """Return ``host:port`` of a process, by its index and its number of earlier starts."""
        found = self.endpoints[process] if process < len(self.endpoints) else None
        if found is None or not self.moves:
            return found
        host, _, port = found.rpartition(":")
        return f"{host}:{int(port) + 100 * starts}"

    @property
    def config(self) -> AssignmentConfig:
        """Settings of the assignor."""
        if not self.has_copies:
            return AssignmentConfig()
        return AssignmentConfig(
            num_standby_replicas=self.standbys, probing_rebalance_interval_ms=_PROBING_MS
        )

    @property
    def rates(self) -> StateRates:
        """How state grows and is restored."""
        return StateRates() if self.restore is None else StateRates(restore=self.restore)

    def followups_most(self, partitions: int, *, hops: bool) -> int:
        """Return how many follow-up rebalances bring a group with this many tasks to rest.

        Each copy, active or standby, may have to move once. As many as max.warmup.replicas are
        warmed up at a time; each time takes as many probing intervals as restoring a whole
        changelog does, and one more to move the tasks.

        Args:
            partitions: of the source topic.
            hops: the strategy is Kafka's, which moves a task to one caught-up copy after the other;
                twice as many then.
        """
        rates, config = self.rates, self.config
        restore_ms = 1000 * rates.history // (rates.restore - rates.growth)
        times = -(-partitions * (1 + self.standbys) // config.max_warmup_replicas)
        rounds = times * (2 + restore_ms // config.probing_rebalance_interval_ms) + 1
        return 2 * rounds if hops else rounds

    @classmethod
    def of(
        cls, processes: int, *, cooperative: bool, endpoints: bool, views: bool, standbys: int
    ) -> Self:
        """Return what options ask for; views need members that serve queries."""
        hosts = tuple(f"{lane_name(p)}.example:9090" for p in range(processes))
        return cls(
            cooperative=cooperative,
            endpoints=hosts if endpoints or views else (),
            views=views,
            standbys=standbys,
        )


NO_DIMENSIONS: Final = Dimensions()
"""The group without any dimensions."""


def draw_dimensions(seed: int, processes: int) -> tuple[Dimensions, bool]:
    """Draw the dimensions of a group, and whether its members are static.

    Each is on in half of the seeds. Where members serve queries, one in six does not, hosts have
    names of different lengths, and in two of five seeds the group's record is small.
    """
    rng = random.Random(f"dimensions of {seed}")  # noqa: S311 a simulation
    cooperative, routes, views = (rng.random() < _HALF for _ in range(3))
    endpoints = tuple(_endpoint(rng, process) for process in range(processes)) if routes else ()
    standbys, is_slow = rng.choice((0, 1)), rng.random() < _HALF
    drawn = Dimensions(
        cooperative=cooperative,
        endpoints=endpoints,
        views=views and routes,
        record_limit=rng.choice(_RECORD_LIMITS) if routes else None,
        standbys=standbys,
        restore=rng.choice(_RESTORES[1:]) if is_slow else None,
        moves=routes and rng.random() < _HALF,
    )
    return drawn, rng.random() < _HALF


def _endpoint(rng: random.Random, process: int) -> str | None:
    if not rng.randrange(6):
        return None
    return f"{rng.choice(_HOSTS).format(lane_name(process))}:{9090 + process}"
