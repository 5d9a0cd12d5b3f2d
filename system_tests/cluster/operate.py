"""The operator of a simulated cluster: bounces, requests, waits until the cluster is at rest."""

from dataclasses import dataclass, field
from typing import Final

from probing.features import (
    FeatureUpdate,
    FinalizedLevels,
    UpdateKind,
    UpdateOutcome,
    UpdateRequest,
    UpdateResult,
)
from system_tests.cluster.events import Acknowledged, Rested, Restless
from system_tests.cluster.machines.content import Entry
from system_tests.cluster.machines.replica import ContentRecord
from system_tests.cluster.nodes.clients import ClientGroup
from system_tests.cluster.nodes.controller import append, ask_update, when_committed
from system_tests.cluster.nodes.programs import Start, find_program
from system_tests.cluster.nodes.reading import first_levels
from system_tests.cluster.nodes.simulation import Cluster, Disk, Node
from system_tests.cluster.plan import KRAFT_FAULTS
from system_tests.sim import Happened

SETTLE_MS: Final = 60_000
_ANSWER_MS: Final = 4_000
_TRIES: Final = 15


class NotAtRest(Exception):
    """The cluster did not come to rest in time; the experiment ends."""


@dataclass(slots=True, kw_only=True)
class Operator:
    """The operator of a cluster.

    Attributes:
        cluster: the simulated cluster.
        group: the group of clients.
        faults: names of the faults that may occur.
        kept_down: nodes that the operator keeps down.
        excused: nodes that may be down because they are bounced later.
        requests: number of requests so far.
        keys: number of entries that clients wrote so far.
    """

    cluster: Cluster
    group: ClientGroup
    faults: frozenset[str]
    kept_down: set[str] = field(default_factory=set)
    excused: set[str] = field(default_factory=set)
    requests: int = 0
    keys: int = 0

    def say(self, what: str) -> None:
        """Record a step of the operator in the trace."""
        self.cluster.record(Happened(self.cluster.now_ms, "", f"operator: {what}"))

    def settle(self) -> None:
        """Wait until the cluster is at rest, and record it in the trace.

        Raises:
            NotAtRest: the cluster did not come to rest in time; this is recorded, too.
        """
        cluster = self.cluster
        if cluster.run(until=lambda: not self.reason_not_at_rest(), within_ms=SETTLE_MS):
            active = cluster.active()
            name, levels = ("", FinalizedLevels()) if active is None else _tip(active)
            cluster.record(Rested(cluster.now_ms, name, levels))
            return
        cluster.record(Restless(cluster.now_ms, SETTLE_MS, self.reason_not_at_rest()))
        raise NotAtRest

    def reason_not_at_rest(self) -> str:
        """Return why the cluster is not at rest; "" if it is."""
        cluster = self.cluster
        for node in cluster.nodes:
            if not node.is_up and node.name not in self.kept_down | self.excused:
                return f"{node.name} is down"
            if node.is_up and node.paused_until_ms > cluster.now_ms:
                return f"{node.name} is paused"
        active = cluster.active()
        if active is None or active.machine is None:
            return "no active controller"
        return self._reason_of_nodes(active)

    def _reason_of_nodes(self, active: Node) -> str:
        machine = active.machine
        if machine is None or active.commit < len(active.disk.log):
            return "a batch is not committed"
        end = active.commit
        for node in self.cluster.nodes:
            if not node.is_up:
                continue
            if node.replica.next_offset < end:
                return f"{node.name} has not read the whole log"
            if node.start.is_migrated and node.published.levels != machine.finalized.levels:
                return f"{node.name} is not at the levels of the cluster"
            row = machine.registrations.get(node.name)
            if row is None or row.is_fenced or row.incarnation != node.incarnation:
                return f"{node.name} is fenced"
        return self._reason_of_group(machine.finalized)

    def _reason_of_group(self, finalized: FinalizedLevels) -> str:
        if self.cluster.realm.has_setting:
            return ""
        if behind := self.group.lagging_member(finalized):
            return f"member {behind} is not at the levels of the cluster"
        level = finalized.level_of(self.cluster.realm.governing)
        up = [node for node in self.cluster.nodes if node.is_up]
        for node in up:
            for peer in up:
                if node is not peer and node.spoken.get(peer.name) != level:
                    return f"{node.name} speaks to {peer.name} at another level"
        return ""

    def bounce(self, node: Node, start: Start, *, wait: bool = True) -> None:
        """Restart a node with another release or setting."""
        cluster, rng = self.cluster, self.cluster.scheduler
        self.inject_fault()
        cluster.stop(cluster.by_name[node.name])
        cluster.by_name[node.name].start = start
        cluster.simulation.run_for(rng.delay(100, 1_500))
        if cluster.by_name[node.name].is_up:  # a fault restarted it on its old release
            cluster.stop(cluster.by_name[node.name])
        cluster.start(cluster.by_name[node.name], start)
        if wait:
            self.settle()

    def format_anew(self, node: Node, start: Start) -> None:
        """Erase the disk of a node if its next release does not support the levels on it."""
        snapshot = node.disk.snapshot
        found = first_levels(self.cluster) if snapshot is None else snapshot.finalized
        ranges = find_program(start.program).ranges
        if all(name in ranges and level in ranges[name] for name, level in found.levels.items()):
            return
        self.say(f"{node.name} is formatted again: {start} does not support the levels on its disk")
        self.cluster.stop(node)
        node.disk = Disk()

    def roll(
        self, start: Start, *, but: tuple[str, ...] = (), eager: dict[str, int] | None = None
    ) -> None:
        """Bounce all nodes, one at a time, in random order.

        Args:
            start: release and setting of the nodes.
            but: nodes that are not bounced.
            eager: levels that the operator sometimes requests too early.
        """
        self.say(f"rolling bounce to {start}")
        rng = self.cluster.scheduler
        names = rng.shuffled([node.name for node in self.cluster.nodes if node.name not in but])
        if rng.happens(0.6 if eager else 0.3):
            names.sort(key=lambda name: name[0])  # brokers first
        for place, name in enumerate(names):
            self.kept_down.discard(name)
            self.excused = set(names[place + 1 :]) if eager else set()
            self.bounce(self.cluster.by_name[name], start)
            if eager and rng.happens(0.3):
                self.update(eager)
        self.excused = set()

    def update(
        self, levels: dict[str, int], kind: UpdateKind = UpdateKind.UPGRADE, *, dry: bool = False
    ) -> UpdateOutcome | None:
        """Repeat a request until it is answered; return None if it never is."""
        rows = tuple(
            FeatureUpdate(feature=name, level=level, kind=kind)
            for name, level in sorted(levels.items())
        )
        request = UpdateRequest(updates=rows, validate_only=dry)
        for _ in range(_TRIES):
            outcome = self._ask_once(request)
            if outcome is not None:
                return outcome
            done = self._done_already(request)
            if done is not None:
                return done
        return None

    def update_until_accepted(self, levels: dict[str, int]) -> None:
        """Repeat a request until it is accepted, or the tries are used up.

        A new active controller refuses until it has heard from the other controllers.
        """
        for _ in range(_TRIES):
            outcome = self.update(levels)
            self.settle()
            if outcome is not None and outcome.ok:
                return

    def _ask_once(self, request: UpdateRequest) -> UpdateOutcome | None:
        """Send a request to the active controller and wait until its records are committed."""
        cluster = self.cluster
        if not cluster.run(until=lambda: self._reachable_active() is not None, within_ms=SETTLE_MS):
            return None
        active = self._reachable_active()
        if active is None:
            return None
        self.requests += 1
        number = self.requests
        outcome = ask_update(cluster, active, number, request)
        if not outcome.records:
            return outcome
        answers: list[int] = []

        def tell() -> None:
            cluster.record(Acknowledged(cluster.now_ms, number, outcome.finalized.epoch))
            answers.append(number)

        when_committed(active, tell)
        return outcome if cluster.run(until=lambda: bool(answers), within_ms=_ANSWER_MS) else None

    def _reachable_active(self) -> Node | None:
        active = self.cluster.active()
        if active is None or active.machine is None:
            return None
        return active if active.paused_until_ms <= self.cluster.now_ms else None

    def _done_already(self, request: UpdateRequest) -> UpdateOutcome | None:
        """Return the outcome of a request that was done without an answer; None if it was not."""
        self.settle()
        active = self._reachable_active()
        if active is None or active.machine is None or request.validate_only:
            return None
        finalized = active.machine.finalized
        wanted = {row.feature: max(row.level, 0) for row in request.updates}
        if any(finalized.level_of(name) != level for name, level in wanted.items()):
            return None
        results: tuple[UpdateResult, ...] = ()
        return UpdateOutcome(results=results, finalized=finalized)

    def write(self, count: int) -> None:
        """Append entries that the current level allows: topics, credentials and so on."""
        active = self._reachable_active()
        if active is None or active.machine is None:
            return
        schema = self.cluster.realm.schema
        level = active.machine.finalized.level_of(schema.feature)
        kinds = [kind for kind in schema.kinds if kind.since <= level and kind.name != "broker"]
        for _ in range(count):
            kind = self.cluster.scheduler.choose(kinds)
            self.keys += 1
            known = [name for name, since in sorted(kind.later_fields.items()) if since <= level]
            fields = dict.fromkeys(("name", *known), self.keys)
            entry = Entry(kind=kind.name, key=f"k{self.keys:03}", fields=fields)
            append(self.cluster, active, (ContentRecord(entry=entry),))

    def inject_fault(self) -> None:
        """Choose and schedule the faults of the next step at random."""
        cluster, rng = self.cluster, self.cluster.scheduler
        cluster.drop = 0.02 if "drop" in self.faults and rng.happens(0.5) else 0.0
        for fault in KRAFT_FAULTS:
            if fault not in self.faults or not rng.happens(0.3):
                continue
            at_ms = rng.delay(0, 2_000)
            victim = rng.choose(cluster.nodes)
            if fault == "active":
                victim = cluster.active() or victim
            if victim.name in self.kept_down:
                continue
            if fault in ("crash", "active"):
                cluster.do_later(at_ms, "kill", victim, rng.delay(200, 6_000))
            elif fault == "pause":
                cluster.do_later(at_ms, "pause", victim, rng.delay(500, 6_000))
            elif fault == "lag":
                broker = rng.choose(cluster.brokers)
                cluster.do_later(at_ms, "lag", broker, rng.delay(500, 4_000), 8_000)
        if self.group.size and "crash" in self.faults and rng.happens(0.2):
            self.group.restart(rng.delay(0, self.group.size - 1))

    def heal(self, start: Start) -> None:
        """End all faults, start all nodes, and wait until the cluster is at rest."""
        self.cluster.drop = 0.0
        self.faults = frozenset()
        self.kept_down.clear()
        self.cluster.simulation.run_for(8_000)
        for node in list(self.cluster.nodes):
            if node.is_up and node.start != start:
                self.cluster.stop(node)
            if not self.cluster.by_name[node.name].is_up:
                self.cluster.start(self.cluster.by_name[node.name], start)
        self.settle()


def _tip(active: Node) -> tuple[str, FinalizedLevels]:
    machine = active.machine
    return active.name, FinalizedLevels() if machine is None else machine.finalized
