"""Options of one experiment, and the upgrade path that follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from probing import Bounce, RebalanceProtocol, Release
from probing.upgrades import former_answer_is_unreadable
from system_tests.engine import OptionError
from system_tests.sim.known_issues import path_between
from system_tests.sim.world.behaviour import behaviour_of, find_program
from system_tests.sim.world.dimensions import NO_DIMENSIONS, Dimensions
from system_tests.sim.world.disk import StateRates
from system_tests.topology_changes import ChangeKind, TopologyChange

FAULTS = ("drop", "duplicate", "delay", "pause", "slow", "crash", "leader", "coordinator", "disk")
"""Faults: messages lost, sent twice, late; members paused past their session, slow,
killed; the leader killed; the coordinator moved; a state directory lost."""
NATIVE = "native"
_EAGER_PIN = "2.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class BounceOptions:
    """One experiment.

    Attributes:
        seed: of everything that is drawn.
        old, new: releases; None: drawn among the paths that should work.
        members: processes; threads: in each; static: with instance ids; partitions: of the topic.
        session_timeout_ms: of all members; None: the default of their release.
        rates: how state grows and is restored; None: those of the dimensions.
        faults: names out of `FAULTS`.
        offline: stop all, start all, no pin; force: one bounce, no pin where there is no path.
        dimensions: what else the group has.
        draw_all: dimensions are drawn, and whether members are static.
        topology: the topology changes in this way; None: it does not change, or it is drawn.
        draw_topology: whatever of the change is left open is drawn.
        carries_both: new programs carry both topologies; drawn.
        followups_most: follow-up rebalances after the last bounce; None: until nothing warms up.
        restart_ms: how long a bounced member is down; None: drawn, see `RESTARTS`.
        deletes_state: a process starts as `new` with an empty state directory.
        waits_for_sessions: a static member is started after its session has expired, where the new
            release may not be able to read its former answer; offline, all are started after all
            sessions have expired, each after the time that a bounced member is down.
        stages: the bounces; empty: those of the path between the releases.
        waits_for_restores: the next member is stopped when no task restores, not when all joined.
    """

    seed: int = 0
    old: str | None = None
    new: str | None = None
    members: int = 3
    threads: int = 1
    static: bool = False
    partitions: int = 6
    session_timeout_ms: int | None = None
    rates: StateRates | None = None
    faults: frozenset[str] = frozenset()
    offline: bool = False
    force: bool = False
    dimensions: Dimensions = NO_DIMENSIONS
    draw_all: bool = False
    topology: ChangeKind | None = None
    draw_topology: bool = False
    carries_both: bool = False
    followups_most: int | None = None
    restart_ms: int | None = None
    deletes_state: bool = False
    waits_for_sessions: bool = False
    stages: tuple[Bounce, ...] = ()
    waits_for_restores: bool = False

    @property
    def change(self) -> TopologyChange | None:
        """The change of the topology, once everything is drawn."""
        if self.topology is None:
            return None
        return TopologyChange(kind=self.topology, carries_both=self.carries_both)

    @property
    def replay(self) -> str:
        """The command that runs exactly this again."""
        parts = [f"rolling-bounce simulate --seed {self.seed}"]
        parts += [f"--from {self.old}"] if self.old else []
        parts += [f"--to {self.new}"] if self.new else []
        parts.append(f"--members {self.members} --threads {self.threads}")
        parts += [f"--partitions {self.partitions}"]
        parts += ["--static"] if self.static else []
        parts += [f"--faults {','.join(sorted(self.faults))}"] if self.faults else []
        parts += ["--draw all"] if self.draw_all else []
        parts += ["--draw topology"] if self.draw_topology else []
        parts += [f"--topology {self.topology}"] if self.topology else []
        parts += ["--wait-for-sessions"] if self.waits_for_sessions else []
        parts += ["--offline"] if self.offline else []
        parts += ["--force"] if self.force else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An upgrade path: the first release, the bounces, the versions at the end.

    Attributes:
        old: what every process runs at first.
        stages: the bounces, in order.
        resting_versions: what members may write where the group comes to rest after the last
            bounce.
        is_uniform: they all write the same then. Native members need not: each is answered in what
            it wrote, and writes another version at the next rebalance, whenever that comes.
        final_version: the latest version that all members support; all of them write it after one
            more rebalance.
        waits: indices of the stages in which a stopped member starts after its session has expired.
    """

    old: str
    stages: tuple[Bounce, ...]
    resting_versions: tuple[int, ...]
    is_uniform: bool
    final_version: int
    waits: frozenset[int] = frozenset()

    @property
    def new(self) -> str:
        """Name of the release at the end."""
        return self.stages[-1].release

    @property
    def text(self) -> str:
        """The releases in one line, with the pins."""
        stages = (
            f"{stage.release} (upgrade.from {stage.upgrade_from})"
            if stage.upgrade_from
            else stage.release
            for stage in self.stages
        )
        return " -> ".join((self.old, *stages))


def version_bound(*, threads: int, stages: int) -> int:
    """Return how many rebalances for the version a bounce may cost under Kafka's rules.

    One per bounced thread and one at the end, in each stage. That holds where the operator waits
    for the group to settle between members: a member that learns of a rebalance writes its new
    version in it, so that requests of one generation share a rebalance. Thousands of drawn bounces
    stayed within the bound. It does not hold where messages are lost or members are slow
    (KAFKA-14382), and is not checked there.
    """
    return stages * (threads + 1)


def most_rebalances(options: BounceOptions) -> int:
    """Return how many rebalances one step of a change of the topology may cost.

    A member leaves and another comes; each moves tasks, which cooperative members hand over in one
    more rebalance. The change itself costs at most one more.
    """
    return 2 * (2 if options.dimensions.cooperative else 1) + 1


def plan_bounce(options: BounceOptions) -> Plan:
    """Return the stages between the two releases of the options.

    Raises:
        ReleaseError: a release does not exist.
        OptionError: there is no path, and neither `offline` nor `force` asks for one; or static
            members are asked for, and one of the releases has none.
    """
    if options.old is None or options.new is None:
        raise OptionError("a plan needs both releases; give old and new, or let `draw` choose")
    old, new = find_program(options.old), find_program(options.new)
    for release in (old, new):
        if options.static and not behaviour_of(release.name, None).may_be_static:
            raise OptionError(
                f"{release.name} has no static members: group.instance.id exists since 2.3.0"
                " (KIP-345); leave --static out, or take releases from 2.3.0 on"
            )
    path = path_between(old, new)
    asked_for = options.offline or options.force
    if not (path.possible or asked_for or options.stages):
        raise OptionError(
            f"{path.reasons[0]} (--offline does that; --force shows what it prevents)"
        )
    stages = options.stages or path.stages(in_one=asked_for)
    if options.dimensions.cooperative and not asked_for:
        stages = _by_way_of_eager(stages, old, new)
    return Plan(
        old=old.name,
        stages=stages,
        resting_versions=_resting(old, new, options),
        is_uniform=not new.is_native,
        final_version=new.latest_native_version or new.latest_version,
        waits=_waits(old, stages) if options.static and options.waits_for_sessions else frozenset(),
    )


def _waits(old: Release, stages: tuple[Bounce, ...]) -> frozenset[int]:
    """Return the stages whose release may not be able to read an answer to the one before."""
    programs = (old, *(find_program(stage.release) for stage in stages))
    return frozenset(
        number
        for number, (before, after) in enumerate(pairwise(programs))
        if former_answer_is_unreadable(before, after)
    )


def _by_way_of_eager(stages: tuple[Bounce, ...], old: Release, new: Release) -> tuple[Bounce, ...]:
    """Add the bounce in which cooperative native members are eager beside releases up to 2.3.

    A leader up to 2.3 assigns a partition to another member while a cooperative owner still has it.
    So native members are eager as long as such a program may be in the group (KIP-429).
    """
    eager = Bounce(release="", upgrade_from=_EAGER_PIN, reasons=())
    if new.is_native and _is_eager(old) and stages[0].upgrade_from is None:
        return (replace(eager, release=new.name), *stages)
    if old.is_native and _is_eager(new):
        return (replace(eager, release=old.name), *stages)
    return stages


def _is_eager(release: Release) -> bool:
    return release.rebalance_protocol is RebalanceProtocol.EAGER and not release.is_native


def _resting(old: Release, new: Release, options: BounceOptions) -> tuple[int, ...]:
    resting = [*reversed(new.native_versions), new.latest_version, new.start_version]
    # Static members before KIP-568 cannot force a rebalance: after unsubscribing each is
    # given its old answer, so the group stays as it was until a member joins or leaves.
    if options.static and behaviour_of(new.name, None).forces_by_leaving:
        resting.append(old.latest_version)
    return tuple(dict.fromkeys(resting))


def _check_change(options: BounceOptions, *, draw: str) -> None:
    """Refuse options that do not go with a change of the topology."""
    if draw == "all":
        raise OptionError("--topology draws a group of its own; leave --draw all out")
    for name, release in (("--from", options.old), ("--to", options.new)):
        if release not in (None, NATIVE):
            raise OptionError(
                f"a topology is changed in a group of native members; {name} {release} is not"
                " native, leave it out"
            )


def read_options(given: Mapping[str, Any]) -> BounceOptions:
    """Check what can be checked before anything runs.

    Args:
        given: seed, old, new, members, threads, static, partitions, offline, force,
            waits_for_sessions as in `BounceOptions`, `draw` as text: releases, all or topology,
            `topology` as text, and `faults` as text: none, all, or a comma separated list.

    Raises:
        OptionError: an unknown fault, or options that do not fit together.
        ReleaseError: no such release.
    """
    words = [word.strip() for word in given["faults"].split(",") if word.strip()]
    # A failover may fence a static member for good: that is known, and must be asked for by name.
    everything = [f for f in FAULTS if not (given["static"] and f == "coordinator")]
    faults = (
        frozenset() if words == ["none"] else frozenset(everything if words == ["all"] else words)
    )
    unknown = sorted(faults - set(FAULTS))
    if unknown:
        raise OptionError(
            f"unknown fault {unknown[0]!r}; choose from none, all, {', '.join(FAULTS)}"
        )
    if faults and given["offline"]:
        raise OptionError("--faults occur while members are bounced; leave --offline out")
    options = BounceOptions(
        seed=given["seed"] or 0,
        old=given["old"],
        new=given["new"],
        members=given["members"],
        threads=given["threads"],
        static=given["static"],
        partitions=given["partitions"],
        faults=faults,
        offline=given["offline"],
        force=given["force"],
        waits_for_sessions=given["waits_for_sessions"],
        draw_all=given["draw"] == "all",
        topology=None if given["topology"] is None else ChangeKind(given["topology"]),
        draw_topology=given["draw"] == "topology",
    )
    if options.topology is not None or options.draw_topology:
        _check_change(options, draw=given["draw"])
    for name in filter(None, (options.old, options.new)):
        find_program(name)
    if options.old is not None and options.new is not None:
        plan_bounce(options)
    return options
