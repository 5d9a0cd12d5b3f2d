"""A simulated world that stands still: no clock, no dice, only what may happen next.

It is the simulator's world with the same members, coordinator and bytes. What is different is who
decides: a move is taken from outside, the world settles whatever follows from it inside one thread,
and waits. See `moves` for which orders are told apart.
"""

from collections.abc import Hashable, Sequence
from typing import Self

from assignor.rebalance import NO_CLAIMS, NONE_STALLED
from encoding import view_reference
from system_tests.coordinator import CoordinatorConfig, Group, JoinedMember, LeaveGroup
from system_tests.sim import Pending, World, WorldSetup
from system_tests.sim.world import (
    GROUP,
    INSTANCE,
    NO_DIMENSIONS,
    Behaviour,
    Dimensions,
    LeaderPlace,
    Led,
    StateRates,
    StreamThread,
    beat,
    forget_answers,
)

_KEPT = 8_192  # answers of leaders; a search that goes by actions asks again soon
_LOCAL = frozenset({"answer", "poll"})


def still_setup(
    *,
    processes: int,
    threads: int,
    static: bool,
    partitions: int,
    dimensions: Dimensions = NO_DIMENSIONS,
) -> WorldSetup:
    """What such a world is made of: state is there at once, an empty group waits for nobody."""
    return WorldSetup(
        seed=None,
        processes=processes,
        threads=threads,
        static=static,
        partitions=partitions,
        rates=StateRates(history=0, growth=0),
        broker=CoordinatorConfig(initial_rebalance_delay_ms=0),
        config=dimensions.config,
        dimensions=dimensions,
    )


class StillWorld(World):
    """A world that moves only when it is told to.

    Attributes:
        asked: lanes among which the coordinator chose a leader in the last move; empty if it had
            no choice. `next_leaders` says whom it takes.
        led: answers of leaders, by all that they saw; shared by the worlds of a search.
    """

    asked: tuple[str, ...] = ()

    def __init__(self, setup: WorldSetup) -> None:
        """Make a world in which nobody is up."""
        super().__init__(setup)
        forget_answers()
        self.led: dict[Hashable, Led] = {}

    def copy(self) -> Self:
        """Return an independent world in the same state; what leaders answered is shared."""
        other = super().copy()
        other.asked = ()
        other.led = self.led
        return other

    def lead(self, behaviour: Behaviour, joined: Sequence[JoinedMember], place: LeaderPlace) -> Led:
        """Answer the group; what is asked a second time, in other orders of moves, is known.

        An answer follows from what the leader sees alone. Names belong to the member ids, and end
        offsets to the time. Each leader answers as a new one, without a memory of claims: nobody
        here claims what it was not given, and states would differ by their past.
        """
        lags = tuple((name, tuple(tasks.items())) for name, tasks in place.lags_before.items())
        program = (behaviour.release.name, behaviour.upgrade_from)
        where = (place.thread, place.member_id, place.generation, place.now_ms)
        held = None if place.held_view is None else view_reference(place.held_view)
        key = (program, where, tuple(joined), lags, held)
        led = self.led.get(key)
        if led is None:
            if len(self.led) >= _KEPT:
                self.led.clear()
            place = place._replace(claims=NO_CLAIMS, stalled=NONE_STALLED)
            led = self.led[key] = super().lead(behaviour, joined, place)
        return led

    def release(self) -> None:
        """Let go of the coordinator, which points back here; the world is of no more use."""
        del self.coordinator

    @property
    def group(self) -> Group:
        """The one group as the coordinator has it."""
        return self.coordinator.peek(GROUP) or Group(group_id=GROUP)

    def settle_threads(self) -> None:
        """Let everything happen that concerns one thread alone: polls, and answers that it takes.

        What is void is forgotten on the way: timers and answers of former lives, heartbeats.
        """
        scheduler = self.scheduler
        local = True
        while local:
            local = False
            for pending in scheduler.pending():
                if self._is_void(pending):
                    scheduler.take(pending)
                elif pending.kind in _LOCAL:
                    scheduler.take(pending)
                    self._dispatch(pending)
                    local = True
                    break

    def beat(self, thread: StreamThread) -> None:
        """Let a member hear of the rebalance, or that it is a member no more."""
        beat(self, thread)

    def come_due(self, pending: Pending) -> None:
        """Let a timer's time come, and the clock stand again as before."""
        before_ms = self.now_ms
        self.scheduler.take(pending)
        self.scheduler.now_ms = max(before_ms, pending.due_ms)
        self._dispatch(pending)
        self.scheduler.now_ms = before_ms

    def expire(self, member_id: str) -> None:
        """Let a member's session run out."""
        self._absorb(self.coordinator.expire(GROUP, member_id, now_ms=self.now_ms))

    def is_at_rest(self) -> bool:
        """Whether every thread that is up rests in the one generation, and nobody else is in it."""
        up = [thread for thread in self.threads if thread.is_up]
        members = {thread.member_id for thread in up}
        generations = {thread.generation for thread in up}
        group = self.group
        return (
            bool(up)
            and self.is_stable
            and all(thread.is_resting for thread in up)
            and members == set(group.members)
            and generations == {group.generation}
        )

    def _is_void(self, pending: Pending) -> bool:
        kind, data = pending.kind, pending.data
        if kind == "beat":
            return True
        thread = self.threads[pending.target]
        if kind == "request":
            request, token = data
            return token[1] != thread.life and not isinstance(request, LeaveGroup)
        if data[0] != thread.life:
            return True
        if kind == "answer":
            return bool(data[1] != thread.request)
        return bool(data[1] != (thread.polls if kind == "poll" else thread.followup))

    def _choose_leader(self, member_ids: Sequence[str]) -> str:
        if not self.asked and len(member_ids) > 1:
            self.asked = tuple(self.names[member_id] for member_id in member_ids)
        return super()._choose_leader(member_ids)

    def _new_member_id(self, prefix: str) -> str:
        """Ids sort by age: what hangs on their order must not hang on their number of digits."""
        self._ids += 1
        member_id = f"{prefix}-{self._ids:06d}"
        self.names[member_id] = prefix.removesuffix(INSTANCE)
        return member_id
