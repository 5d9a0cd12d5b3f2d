"""What one live experiment does: frozen options and the stages of its path."""

from dataclasses import dataclass

from probing import find_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One round of the path: every member is brought to this release.

    Attributes:
        release: exact name, as in the release table.
        upgrade_from: the pin the members run with, or None.
        latest_version: the highest version the release reads and writes.
        rebalance_protocol: "eager" or "cooperative", as the members are told.
    """

    release: str
    upgrade_from: str | None
    latest_version: int
    rebalance_protocol: str = "eager"

    def describe(self) -> str:
        """Name release and pin for a person."""
        pin = f", upgrade.from {self.upgrade_from}" if self.upgrade_from else ""
        moves = "" if self.rebalance_protocol == "eager" else f", {self.rebalance_protocol}"
        return f"release {self.release} (latest v{self.latest_version}){pin}{moves}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """From where, through which stages, to which version.

    Attributes:
        before: what every member runs at first.
        stages: the bounces, in order; at least one.
        promised_versions: versions that the group may use at the end, the usual one first.
        notes: sentences about the path, the reason for its number of bounces first.
        advice: one sentence for the case that members die of this path, or None.
    """

    before: Stage
    stages: tuple[Stage, ...]
    promised_versions: tuple[int, ...]
    notes: tuple[str, ...] = ()
    advice: str | None = None

    def admits_foreign(self, leader_release: str | None) -> bool:
        """Return whether a member that nobody can read joins now.

        It joins under a leader that sets it apart; on a path to a release whose leaders all end
        with it, at once.

        Args:
            leader_release: of the leader; None while the group has none.
        """
        if leader_release is None:
            return False
        ends_native = find_release(self.stages[-1].release).is_native
        return find_release(leader_release).is_native or not ends_native


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """The numbers of one experiment; times in the unit of their name.

    `broker` is the release of a real Kafka broker to start, or None for the embedded one; `client`
    is the library that members run on, or "mixed"; `static` members carry a group.instance.id;
    `hold_back` raises and lowers the group's level after the bounce, and `take_back` bounces the
    members back to the release that they came from; `replace_brokers` puts new
    brokers on new ports in place of all that run, in the middle of each bounce.
    """

    members: int = 3
    client: str = "kafka-python"
    static: bool = False
    partitions: int = 6
    rate: float = 200.0
    seed: int = 0
    order: str = "random"
    offline: bool = False
    kill: str | None = None
    garbage: bool = False
    hold_back: bool = False
    take_back: bool = False
    replace_brokers: bool = False
    bootstrap_server: str | None = None
    broker: str | None = None
    port: int = 0
    session_timeout_ms: int = 6000
    heartbeat_ms: int = 300
    settle_timeout_s: float = 30.0
    quiet_ms: float = 700.0
