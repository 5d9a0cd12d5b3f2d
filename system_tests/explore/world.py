"""The simulated world of a search: no clock, no randomness, driven move by move.

It has the members, coordinator and bytes of the simulator's world. The caller takes a move, the
world does everything that follows inside one thread, and then waits. `moves` lists the moves.
"""

from collections.abc import Hashable, Sequence

from assignor.rebalance import NO_CLAIMS, NONE_STALLED
from encoding import view_reference
from system_tests.coordinator import CoordinatorConfig, Group, JoinedMember, LeaveGroup
from system_tests.engine import Pending
from system_tests.sim import World, WorldSetup
from system_tests.sim.world import (
    GROUP,
    NO_DIMENSIONS,
    Application,
    Behaviour,
    Dimensions,
    LeaderPlace,
    Led,
    MemberIds,
    StateRates,
    StreamThread,
    absorb,
    beat,
    forget_answers,
    lead,
)

_KEPT = 8_192  # cached assignments of leaders; the search repeats the same requests soon
_LOCAL = frozenset({"answer", "poll"})


def search_setup(
    *,
    processes: int,
    threads: int,
    static: bool,
    partitions: int,
    dimensions: Dimensions = NO_DIMENSIONS,
) -> WorldSetup:
    """Return the setup of a search world: state restores at once, no initial rebalance delay."""
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


class SearchMemberIds(MemberIds):
    """Member ids of a search; they sort by age, whatever their number of digits.

    Attributes:
        leader_candidates: lanes from which the coordinator chose a leader in the last move; empty
            if it had no choice. `next_leaders` decides which one it takes.
    """

    leader_candidates: tuple[str, ...] = ()

    def written(self, prefix: str, number: int) -> str:
        """Return the member id with this number, in six digits."""
        return f"{prefix}-{number:06d}"

    def choose_leader(self, member_ids: Sequence[str]) -> str:
        """Return the next leader, and record the candidates."""
        if not self.leader_candidates and len(member_ids) > 1:
            self.leader_candidates = tuple(self.names[member_id] for member_id in member_ids)
        return super().choose_leader(member_ids)


class RememberedLead:
    """Answers of leaders, each computed once from its input.

    The input contains names (by member id) and end offsets (by time). Each leader answers without
    remembered claims: no member of a search claims what it was not given, and with a memory, states
    would differ by their past.

    Attributes:
        known: input of a leader -> its answer.
    """

    def __init__(self) -> None:
        """Begin with no answers."""
        self.known: dict[Hashable, Led] = {}

    def __call__(
        self,
        behaviour: Behaviour,
        application: Application,
        joined: Sequence[JoinedMember],
        place: LeaderPlace,
    ) -> Led:
        """Answer the group; a request that was answered after other moves gets the same answer."""
        lags = tuple((name, tuple(tasks.items())) for name, tasks in place.lags_before.items())
        program = (behaviour.release.name, behaviour.upgrade_from)
        where = (place.thread, place.member_id, place.generation, place.now_ms)
        held = None if place.held_view is None else view_reference(place.held_view)
        key = (program, where, tuple(joined), lags, held)
        led = self.known.get(key)
        if led is None:
            if len(self.known) >= _KEPT:
                self.known.clear()
            place = place._replace(claims=NO_CLAIMS, stalled=NONE_STALLED)
            led = self.known[key] = lead(behaviour, application, joined, place)
        return led


class SearchWorld(World):
    """A world that changes only by moves of the search; its copies share the leaders' answers."""

    member_ids: SearchMemberIds

    def __init__(self, setup: WorldSetup) -> None:
        """Make a world in which no thread is up."""
        super().__init__(setup, member_ids=SearchMemberIds, lead=RememberedLead())
        forget_answers()

    @property
    def group(self) -> Group:
        """The coordinator's state of the group."""
        return self.coordinator.peek(GROUP) or Group(group_id=GROUP)

    def settle_threads(self) -> None:
        """Do all steps that concern one thread only: polls, and responses that it receives.

        Outdated events are dropped: heartbeats, timers and responses from before a restart.
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
                    self.dispatch(pending)
                    local = True
                    break

    def beat(self, thread: StreamThread) -> None:
        """Deliver a heartbeat response: a rebalance is in progress, or the member is unknown."""
        beat(self, thread)

    def come_due(self, pending: Pending) -> None:
        """Process a pending event as if its time had come; the clock is set back afterwards."""
        before_ms = self.now_ms
        self.scheduler.take(pending)
        self.scheduler.now_ms = max(before_ms, pending.due_ms)
        self.dispatch(pending)
        self.scheduler.now_ms = before_ms

    def expire(self, member_id: str) -> None:
        """Let a member's session run out."""
        absorb(self, self.coordinator.expire(GROUP, member_id, now_ms=self.now_ms))

    def is_at_rest(self) -> bool:
        """Whether the group is stable with exactly the running threads, in one generation."""
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
            return token[1] != thread.incarnation and not isinstance(request, LeaveGroup)
        if data[0] != thread.incarnation:
            return True
        if kind == "answer":
            return bool(data[1] != thread.request)
        return bool(data[1] != (thread.polls if kind == "poll" else thread.followup))
