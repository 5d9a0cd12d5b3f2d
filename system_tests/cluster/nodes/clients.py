"""A group of clients of the cluster: KIP-584's steps T0 to T5, with brokers that lag.

The leader polls a broker for the finalized levels. `probing.features.decide_look` decides whether
they are new. Then one rebalance announces them to all members, and each adopts them when it gets
its assignment. A restarted member knows no levels; it gets them in the rebalance in which it joins.
"""

from dataclasses import dataclass
from typing import Final

from probing.features import (
    UNKNOWN_LEVELS,
    FinalizedLevels,
    LookNumbers,
    adopt_levels,
    decide_look,
    group_levels,
)
from system_tests.cluster.events import Adopted, MemberStarted, Polled, Rebalanced
from system_tests.cluster.nodes.simulation import Cluster, Node
from system_tests.engine import Pending

_POLL_MS: Final = (2_000, 3_500)
_FIRST_POLL_MS: Final = 1_000


@dataclass(slots=True)
class Member:
    """One member: its name, and the levels that it uses and sends in its metadata."""

    name: str
    adopted: FinalizedLevels = UNKNOWN_LEVELS


class ClientGroup:
    """The group of clients.

    Attributes:
        members: all members.
        leader: index of the leader.
        generation: current generation.
        answers_from: name of the only broker that is polled; "": a random one.
        poll_ms: minimum and maximum time between two polls.
    """

    def __init__(self, cluster: Cluster, size: int) -> None:
        """Start all members; the first one is leader."""
        self.cluster = cluster
        self.members = [Member(name=f"m{number}") for number in range(size)]
        self.leader = 0
        self.generation = 0
        self.answers_from = ""
        self.poll_ms = _POLL_MS
        for member in self.members:
            cluster.record(MemberStarted(cluster.now_ms, member.name))
        cluster.simulation.handlers |= {"look": self._on_poll, "adopt": self._on_adopt}
        if size:
            cluster.scheduler.schedule(_FIRST_POLL_MS, "look", -1, ())

    @property
    def leading(self) -> Member:
        """The leader."""
        return self.members[self.leader]

    def restart(self, index: int) -> None:
        """Restart a member and rebalance; if it was leader, the next member becomes leader."""
        member = self.members[index]
        member.adopted = UNKNOWN_LEVELS
        self.cluster.record(MemberStarted(self.cluster.now_ms, member.name))
        if index == self.leader:
            self.leader = (index + 1) % len(self.members)
        self._rebalance(UNKNOWN_LEVELS, "membership")

    def _on_poll(self, _: Pending) -> None:
        cluster = self.cluster
        cluster.scheduler.schedule(cluster.scheduler.delay(*self.poll_ms), "look", -1, ())
        broker = self._broker()
        polled = broker.published if broker is not None else UNKNOWN_LEVELS
        decision = decide_look(LookNumbers(polled=polled, adopted=self.leading.adopted))
        name = "" if broker is None else broker.name
        cluster.record(Polled(cluster.now_ms, self.leading.name, name, polled.epoch, decision.rule))
        if decision.takes_epoch:
            self._adopt(self.leading, polled)
        if decision.starts_rebalance:
            self._rebalance(polled, "levels")

    def _broker(self) -> Node | None:
        """Return a random broker that runs and is registered; None if there is none."""
        usable = [
            broker
            for broker in self.cluster.brokers
            if broker.is_up
            and broker.is_registered
            and broker.paused_until_ms <= self.cluster.now_ms
            and self.answers_from in ("", broker.name)
        ]
        return self.cluster.scheduler.choose(usable) if usable else None

    def _rebalance(self, polled: FinalizedLevels, cause: str) -> None:
        """Send assignments to all members; each adopts the levels when its assignment arrives."""
        cluster = self.cluster
        answer = group_levels(polled, [member.adopted for member in self.members])
        cluster.record(Rebalanced(cluster.now_ms, self.leading.name, cause, answer))
        self.generation += 1
        # The leader adopts it at once: otherwise its next assignment could have an older epoch.
        self._adopt(self.leading, answer)
        for index in range(len(self.members)):
            delay_ms = cluster.scheduler.delay(1, 400)
            cluster.scheduler.schedule(delay_ms, "adopt", -1, (index, self.generation, answer))

    def _on_adopt(self, pending: Pending) -> None:
        """A member receives an assignment; it ignores one of an earlier generation."""
        index, generation, answer = pending.data
        if generation == self.generation:
            self._adopt(self.members[index], answer)

    def _adopt(self, member: Member, answer: FinalizedLevels) -> None:
        after = adopt_levels(member.adopted, answer)
        if after != member.adopted:
            member.adopted = after
            self.cluster.record(Adopted(self.cluster.now_ms, member.name, after))
