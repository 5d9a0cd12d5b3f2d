"""The options of one live bounce, each declared once, and which of them exclude each other."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from probing import RebalanceProtocol, find_release
from system_tests.live.order import CLIENTS, MIXED
from system_tests.option_fields import (
    MEMBERS,
    OFFLINE,
    PARTITIONS,
    RATE,
    SEED,
    SETTLE_TIMEOUT,
    STATIC,
    WAITS_FOR_SESSIONS,
    broker_text,
    option,
    session_timeout_text,
)

CLIENT = option(
    "Client library of the members; mixed alternates between kafka-python and aiokafka.",
    choices=(*CLIENTS, MIXED),
)
"""``--client``, as a field of a dataclass; the soak has it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """How the operator takes a path.

    Attributes:
        rebalance_protocol: "eager" or "cooperative": how members move partitions at the end, as far
            as their release and their pin let them.
        static: members that return within their session cause no rebalance (KIP-345), so the
            version may stay until there is one.
        waits_for_sessions: a static member starts after its session has expired, if an earlier
            program may not read its former answer.
        no_pin: one bounce without `upgrade.from`, whatever the path needs.
        offline: stop all, start all, without a pin.
        force: take a path that is known to be broken.
    """

    rebalance_protocol: str = field(
        default=RebalanceProtocol.EAGER.value,
        metadata=option(
            "How members move partitions at the end; aiokafka is always eager.",
            flag="--protocol",
            choices=tuple(protocol.value for protocol in RebalanceProtocol),
        ),
    )
    static: bool = field(default=False, metadata=STATIC)
    waits_for_sessions: bool = field(default=False, metadata=WAITS_FOR_SESSIONS)
    no_pin: bool = field(
        default=False,
        metadata=option("Leave out upgrade.from, even if the release table demands it."),
    )
    offline: bool = field(default=False, metadata=OFFLINE)
    force: bool = field(default=False, metadata=option("Take a path that is known to be broken."))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """The numbers of one live bounce; times in the unit of their name.

    Attributes:
        client: the library that members run on, or "mixed".
        switches: how the path is taken.
        kill: "leader" or a member that is killed in the middle of the first bounce, or None.
        hold_back: the group is held at version 11; its level is raised and lowered after the
            bounce.
        take_back: members are bounced back to their former release once the level is lowered.
        replace_brokers: in the middle of each bounce, new brokers on new ports replace all others.
        garbage: a member with unreadable user data joins once.
        bootstrap_server: a broker that runs already, or None to start one.
        broker: the release of a real Kafka broker to start, or None for the embedded one.
        port: of the broker that is started; 0 takes a free one.
        settle_timeout_s: how long the group may take to settle after each step.
        restart_ms: how long a bounced member is down before it starts again, at least.
        quiet_ms: how long a group must not change before it counts as settled.
    """

    members: int = field(default=3, metadata=MEMBERS)
    partitions: int = field(default=6, metadata=PARTITIONS)
    rate: float = field(default=200.0, metadata=RATE)
    seed: int = field(default=0, metadata=SEED)
    client: str = field(default=CLIENTS[0], metadata=CLIENT)
    switches: Switches = field(default_factory=Switches)
    order: str = field(
        default="random",
        metadata=option("leader-last, leader-first, random, or members: 1,2,0 or b,c,a."),
    )
    kill: str | None = field(
        default=None,
        metadata=option(
            "Member to kill (SIGKILL) in the middle of the first bounce.",
            metavar="leader|MEMBER",
        ),
    )
    hold_back: bool = field(
        default=False,
        metadata=option(
            "Hold the group at v11; raise its level after the bounce and lower it again."
        ),
    )
    take_back: bool = field(
        default=False,
        metadata=option(
            "With --hold-back: bounce back to the old release once the level is lowered."
            " With --topology: lower what the group remembers, and bounce back to the old program."
        ),
    )
    replace_brokers: bool = field(
        default=False,
        metadata=option(
            "In the middle of each bounce, replace all brokers by new ones (KIP-1102)."
        ),
    )
    garbage: bool = field(default=False, metadata=option("Add a member with unreadable metadata."))
    bootstrap_server: str | None = field(
        default=None,
        metadata=option("Use this broker; none is started.", metavar="HOST:PORT"),
    )
    broker: str | None = field(default=None, metadata=broker_text("kafka:RELEASE"))
    port: int = field(
        default=0,
        metadata=option("Port of the broker; 0: a free one.", least=0, most=65535),
    )
    session_timeout_ms: int = field(default=6000, metadata=session_timeout_text(least=1000))
    heartbeat_ms: int = field(
        default=300,
        metadata=option("Heartbeat interval.", least=50, most=60_000),
    )
    settle_timeout_s: float = field(default=30.0, metadata=SETTLE_TIMEOUT)
    restart_ms: int = field(
        default=0,
        metadata=option(
            "How long a bounced member is down, at least; a static one for longer than its session"
            " loses its tasks meanwhile.",
            least=0,
            most=600_000,
        ),
    )
    quiet_ms: float = 300.0


_Conflict = tuple[Callable[[LiveOptions, bool], bool], str]
# Each row: whether the options conflict, given whether the path ends at a native release.
_CONFLICTS: tuple[_Conflict, ...] = (
    (
        lambda options, _: (
            options.client == "aiokafka" and options.switches.rebalance_protocol != "eager"
        ),
        "aiokafka moves partitions eagerly; leave --protocol out, or take --client mixed",
    ),
    (
        lambda options, _: options.switches.offline and options.kill is not None,
        "--kill needs a rolling bounce; leave --offline out",
    ),
    (
        lambda options, _: options.switches.offline and options.restart_ms > 0,
        "--restart-ms needs a rolling bounce; leave --offline out",
    ),
    (
        lambda options, _: options.switches.offline and options.garbage,
        "--garbage needs a rolling bounce; leave --offline out",
    ),
    (
        lambda options, _: options.switches.offline and options.switches.no_pin,
        "--offline never pins; leave --no-pin out",
    ),
    (
        lambda options, ends_native: (
            options.garbage and not options.switches.force and not ends_native
        ),
        "--garbage needs --to native: Kafka's leaders die of what they cannot read; or --force",
    ),
    (
        lambda options, ends_native: options.hold_back and not ends_native,
        "--hold-back needs --to native: JVM releases have no levels",
    ),
    (
        lambda options, _: options.take_back and not options.hold_back,
        "--take-back happens after a level was lowered; add --hold-back",
    ),
    (
        lambda options, _: options.bootstrap_server is not None and options.port != 0,
        "--port is that of a broker to start; leave it or --bootstrap-server out",
    ),
    (
        lambda options, _: options.bootstrap_server is not None and options.broker is not None,
        "--broker starts a broker and --bootstrap-server names one; leave one of them out",
    ),
    (
        lambda options, _: (
            options.replace_brokers
            and (options.bootstrap_server is not None or options.broker is not None)
        ),
        "--replace-brokers needs the embedded brokers; leave --bootstrap-server and --broker out",
    ),
    (
        lambda options, _: options.replace_brokers and options.client == "confluent",
        "--replace-brokers needs members that report it; take another --client",
    ),
    (
        lambda options, _: options.switches.offline and options.replace_brokers,
        "--replace-brokers needs a rolling bounce; leave --offline out",
    ),
    (
        lambda options, _: 3 * options.heartbeat_ms > options.session_timeout_ms,
        "--session-timeout-ms must be at least three times --heartbeat-ms; raise it",
    ),
)


def conflict_of(options: LiveOptions, *, new: str) -> str | None:
    """Return which options exclude each other and what to leave out; None if all go together.

    Args:
        options: of the command.
        new: name of the release that the group is brought to.
    """
    ends_native = find_release(new).is_native
    return next(
        (sentence for conflicts, sentence in _CONFLICTS if conflicts(options, ends_native)), None
    )


def changed_options(options: LiveOptions) -> frozenset[str]:
    """Return the names of the fields, also of the switches, that have not their default."""
    pairs = ((options, LiveOptions()), (options.switches, Switches()))
    return frozenset(
        each.name
        for given, default in pairs
        for each in fields(given)
        if each.name != "switches" and getattr(given, each.name) != getattr(default, each.name)
    )
