"""The part of a simulation that a member acts on: its disk, its leader's answer, its end.

What members do (`consumer.py`, `following.py`) knows this class; the `World` that lets things
happen knows what members do.
"""

from collections.abc import Sequence
from typing import Any

from encoding import TaskId
from system_tests.coordinator import JoinedMember
from system_tests.sim.events import Decided, Ended, Rested
from system_tests.sim.world.behaviour import Behaviour
from system_tests.sim.world.disk import Disk
from system_tests.sim.world.leading import LeaderPlace, Led, lead
from system_tests.sim.world.observing import KEPT_DECISIONS, at_rest, followed
from system_tests.sim.world.setup import WorldSetup, make_application
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.transport import Transport

_FOLLOWUP_SINCE = 7


class MemberWorld(Transport):
    """Threads with disks and an application; see `Transport` for what they send.

    Attributes:
        application, topics, task_of: what the group processes.
        disks: one a process.
        decisions: of the latest leaders, in a group with dimensions.
    """

    def __init__(self, setup: WorldSetup) -> None:
        """Make threads that are not up, with empty disks."""
        super().__init__(setup)
        self.application, self.topics = make_application(setup)
        self.task_of = self.application.task_of
        self.decisions: tuple[Decided, ...] = ()
        self.disks = [Disk(rates=setup.rates) for _ in range(setup.processes)]

    def is_rebalance_over(self) -> bool:
        """Whether the group is stable and every thread has its answer."""
        return self.is_stable and not any(
            thread.phase in (Phase.JOINING, Phase.SYNCING) for thread in self.threads
        )

    def end_offset_sums(self) -> dict[TaskId, int]:
        """What a leader's admin client reads now."""
        return dict.fromkeys(self.task_of.values(), self.setup.rates.end_offset_sum(self.now_ms))

    def lead(self, behaviour: Behaviour, joined: Sequence[JoinedMember], place: LeaderPlace) -> Led:
        """Answer the group; see `leading.lead`."""
        return lead(behaviour, self.application, joined, place)

    def known_by_leader(self, thread: StreamThread) -> dict[str, Any]:
        """What a leader knows in a group with dimensions, by the names of `LeaderPlace`."""
        dimensions = self.setup.dimensions
        if dimensions.is_default:
            return {}
        return {
            "stalled": thread.stalled,
            "held_view": thread.streams.view if dimensions.views else None,
            "observed": self.threads,
        }

    def led_by(self, thread: StreamThread, led: Led) -> None:
        """Put down what a leader decided."""
        self.record(led.happening)
        if led.decided is not None:
            thread.stalled = led.stalled
            self.decisions = (*self.decisions[1 - KEPT_DECISIONS :], led.decided)
            self.record(led.decided)

    def took(self, thread: StreamThread, *, version: int, is_followed: bool) -> None:
        """Put down what a thread goes by after an answer of this version."""
        thread.answered_version = version
        if not self.setup.dimensions.is_default:
            self.record(
                followed(thread, self.decisions, is_followed=is_followed, now_ms=self.now_ms)
            )

    def rested(self) -> Rested:
        """Return what the threads of a group at rest run and go by."""
        dimensions = self.setup.dimensions
        config = self.setup.config
        return Rested(
            at_ms=self.now_ms,
            members=tuple(
                at_rest(thread, self.decisions) for thread in self.threads if thread.is_up
            ),
            standbys=config.num_standby_replicas if dimensions.has_copies else None,
            warmups=config.max_warmup_replicas,
            has_room=dimensions.record_limit is None,
            is_quiet=self.next_followup_ms() is None and self._can_follow_up(),
        )

    def _can_follow_up(self) -> bool:
        """Whether the leader of the group at rest asks for a follow-up where one is due."""
        decided = self.decisions[-1] if self.decisions else None
        if decided is not None and decided.names_stalled:
            return False
        is_native = decided is not None and decided.leader_is_native
        return is_native or all(
            thread.answered_version >= _FOLLOWUP_SINCE for thread in self.threads if thread.is_up
        )

    def next_followup_ms(self) -> int | None:
        """Return when the next follow-up of a member is due, None: none is."""
        return min(
            (
                pending.due_ms
                for pending in self.scheduler.unordered()
                if pending.kind == "followup"
                and pending.data
                == (self.threads[pending.target].life, self.threads[pending.target].followup)
            ),
            default=None,
        )

    def fail(self, thread: StreamThread, why: str) -> None:
        """A thread cannot go on; the other threads of its process do."""
        disk = self.disks[thread.process]
        for partition in thread.owned:
            disk.close(self.task_of[partition], self.now_ms)
        self.end(thread, why, failed=True)

    def end(self, thread: StreamThread, how: str, *, failed: bool) -> None:
        """End the life of a thread; ``how`` goes into the trace."""
        thread.end()
        self.record(Ended(self.now_ms, thread.name, how, failed))
