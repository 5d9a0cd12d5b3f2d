"""Members whose topology the leader does not know: what it remembers of asking them."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from assignor.topology import CarriedTopologies, Subtopology
from encoding import NativeSubscription, TaskId

ASKS_MOST: Final = 2
"""Consecutive rebalances in which tasks wait for asked members; a member that crashes and comes
back again and again must not keep the tasks of others from starting."""

_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A member that was asked to describe its topology, and has not done so.

    Attributes:
        times: answers in a row that asked it.
        generation: of the last one; -1: the leader's client does not tell.
    """

    times: int
    generation: int

    def missed(self, native: NativeSubscription) -> int:
        """Return how many of these answers it did not take; 0 if it took the last one.

        A member whose layout does not tell which answer it took last counts as one that took it.
        """
        took = (
            not native.carries("owned_generation")
            or self.generation == _UNKNOWN
            or native.owned_generation >= self.generation
        )
        return 0 if took else self.times


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyMemory:
    """What a leader remembers of its members' topologies for the next rebalance.

    Attributes:
        appended: subtopologies that its own topology has not, with their numbers.
        described: (fingerprint, version) of a program -> what it carries.
        asked: members that were asked to describe their topology, and have not done so.
        ran: asked member -> tasks that it ran until then, by its own numbers.
        asked_in: the generation in which they were asked; -1: unknown.
        asks: number of consecutive rebalances, up to the last, in which members were asked.
        live: content of the subtopologies that members could run.
        sinks: content of a subtopology -> topics that any member writes when it runs it.
    """

    appended: tuple[Subtopology, ...] = ()
    described: Mapping[tuple[bytes, int], CarriedTopologies] = field(default_factory=dict)
    asked: Mapping[str, Asked] = field(default_factory=dict)
    ran: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    asked_in: int = _UNKNOWN
    asks: int = 0
    live: frozenset[bytes] = frozenset()
    sinks: Mapping[bytes, frozenset[str]] = field(default_factory=dict)


NO_TOPOLOGIES = TopologyMemory()


def asked_now(
    memory: TopologyMemory, asked: AbstractSet[str], refused: AbstractSet[str], generation: int
) -> dict[str, Asked]:
    """Return the members that were asked up to this rebalance, and have not answered.

    Args:
        memory: of the rebalance before.
        asked: members that this rebalance asks.
        refused: members that get no tasks and are not asked; they are not asked again.
        generation: of this rebalance; -1 if unknown.
    """
    before = memory.asked
    times = {member: before[member].times if member in before else 0 for member in sorted(asked)}
    again = {m: Asked(times=count + 1, generation=generation) for m, count in times.items()}
    return {**{m: before[m] for m in sorted(refused & before.keys())}, **again}
