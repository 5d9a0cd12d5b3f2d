"""The part of a simulation that a member acts on: its disk, its leader's answer, its end.

What members do (`consumer.py`, `following.py`) knows this class; the `World` that lets things
happen knows what members do.
"""

from collections.abc import Sequence

from encoding import TaskId
from system_tests.coordinator import JoinedMember
from system_tests.sim.events import Ended
from system_tests.sim.world.behaviour import Behaviour
from system_tests.sim.world.disk import Disk
from system_tests.sim.world.leading import LeaderPlace, Led, lead
from system_tests.sim.world.setup import WorldSetup, make_application
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.transport import Transport


class MemberWorld(Transport):
    """Threads with disks and an application; see `Transport` for what they send.

    Attributes:
        application, topics, task_of: what the group processes.
        disks: one a process.
    """

    def __init__(self, setup: WorldSetup) -> None:
        """Make threads that are not up, with empty disks."""
        super().__init__(setup)
        self.application, self.topics = make_application(setup)
        self.task_of = self.application.task_of
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
