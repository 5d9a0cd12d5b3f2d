"""The simulated group, event by event, and what operators and faults do to it.

A seeded run calls `step`, which takes the earliest event; an exhaustive search copies the world and
calls `take` with each of `choices()` in turn. Operators act through `start`, `stop`, `kill` and so
on. What happened is in `trace`; it is checked elsewhere. The steps of members are in `consumer` and
`assignment`, on the state of `state.WorldState`; they do not call this module.
"""

from collections.abc import Callable
from uuid import UUID

from probing.features import UNKNOWN_LEVELS
from system_tests.coordinator import JoinAnswer, LeaveGroup, Response, SyncAnswer
from system_tests.engine import Pending, Scheduler
from system_tests.sim.events import LOSES_DISK, Cause, Happened, Hindered, Hindrance, Started
from system_tests.sim.world import assignment, consumer
from system_tests.sim.world.behaviour import behaviour_of
from system_tests.sim.world.leading import lead
from system_tests.sim.world.setup import GROUP, LOOK_MS, WorldSetup
from system_tests.sim.world.state import Lead, MemberIds, WorldState
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.transport import absorb, later, poll_later


class World(WorldState):
    """The state of a simulated group, with what moves it; see `WorldState` for its attributes."""

    def __init__(
        self,
        setup: WorldSetup,
        *,
        scheduler: Scheduler | None = None,
        member_ids: type[MemberIds] = MemberIds,
        lead: Lead = lead,
    ) -> None:
        """Make a world in which no thread is up.

        Args:
            setup: sizes, speeds and settings.
            scheduler: by default one with the seed of the setup.
            member_ids: the class of its member ids.
            lead: how its leaders answer.
        """
        scheduler = scheduler or Scheduler(setup.seed)
        super().__init__(setup, scheduler=scheduler, member_ids=member_ids(scheduler), lead=lead)

    # The run

    def step(self) -> bool:
        """Take the earliest event; False if there is none."""
        due_ms = self.scheduler.next_due_ms()
        deadline_ms = self.coordinator.next_deadline_ms()
        if deadline_ms is not None and (due_ms is None or deadline_ms <= due_ms):
            self.scheduler.now_ms = max(self.now_ms, deadline_ms)
            absorb(self, self.coordinator.tick(self.now_ms))
            return True
        if due_ms is None:
            return False
        self.dispatch(self.scheduler.pop())
        return True

    def choices(self) -> list[Pending]:
        """Return the events that may happen next.

        Messages of one thread keep their order in each direction; timers wait until no message is
        on its way, since a network is faster than a timer.
        """
        first: dict[tuple[str, int], Pending] = {}
        for pending in self.scheduler.pending():
            first.setdefault((pending.kind, pending.target), pending)
        messages = [p for p in first.values() if p.kind in ("request", "answer", "fire", "poll")]
        return messages or sorted(first.values())[:1]

    def take(self, pending: Pending) -> None:
        """Take one of `choices()` now."""
        self.scheduler.take(pending)
        self.scheduler.now_ms = max(self.now_ms, pending.due_ms)
        self.dispatch(pending)

    def is_settled(self) -> bool:
        """Whether all threads that are up rest in one generation, and are its only members."""
        if not self.is_stable:
            return False
        up = 0
        for thread in self.threads:
            if thread.phase is Phase.STABLE:
                if thread.rejoin_needed or thread.rejoin_after:
                    return False
                up += 1
            elif thread.phase is not Phase.DOWN:
                return False
        if any(self._concerns(pending) for pending in self.scheduler.unordered()):
            return False
        described = self.coordinator.describe(GROUP)
        members = {(t.member_id, t.generation) for t in self.threads if t.is_up}
        return up > 0 and members == {
            (m.member_id, described.generation) for m in described.members
        }

    def _concerns(self, pending: Pending) -> bool:
        """Whether the event may still change the group: a void or regular timer does not."""
        kind, target, data = pending.kind, pending.target, pending.data
        if kind in ("beat", "followup"):
            return False
        if kind in ("do", "request"):
            return True
        if kind in self.handlers:
            return False
        thread = self.threads[target]
        incarnation, number, *_ = data
        if incarnation != thread.incarnation:
            return False
        if kind == "fire":
            return bool(number == thread.followup)
        return bool(number == (thread.polls if kind == "poll" else thread.request)) and (
            kind == "answer" or thread.rejoin_needed
        )

    # What operators and faults do

    def start(
        self,
        process: int,
        release: str,
        upgrade_from: str | None = None,
        *,
        program: int | None = None,
    ) -> None:
        """Start a process: all its threads, with the state that its disk has.

        `program` is 1 for the new one of a change of the topology; None: as before.

        Raises:
            ReleaseError: no such release, or it refuses the setting.
        """
        dimensions = self.setup.dimensions
        behaviour = behaviour_of(
            release,
            upgrade_from,
            native_cooperative=dimensions.cooperative,
            session_timeout_ms=self.setup.session_timeout_ms,
        )
        process_id = UUID(int=self.process_ids[process])
        for thread in self._of(process):
            thread.program = thread.program if program is None else program
            application = self.application_of(thread)
            thread.start(
                behaviour,
                process_id=process_id,
                subtopologies=application.subtopologies,
                carried=application.carried,
                reached=self.disks[process].reached,
                endpoint=dimensions.endpoint_of(process, starts=thread.incarnation),
                levels=self.setup.levels or UNKNOWN_LEVELS,
            )
            self.record(
                Started(
                    self.now_ms,
                    thread.name,
                    behaviour.release.name,
                    upgrade_from,
                    behaviour.versions,
                    behaviour.release.is_native,
                    behaviour.release.latest_version,
                    application.carried.all_versions if application.carried else (),
                )
            )
            poll_later(self, thread)
            if self.setup.levels is not None:
                later(self, thread, self.scheduler.delay(*LOOK_MS), "look", 0)

    def stop(self, process: int) -> None:
        """Stop a process cleanly."""
        for thread in self._of(process):
            if thread.is_up:
                consumer.leave_on_close(self, thread)
                self.end(thread, "stop", failed=False)
        disk = self.disks[process]
        for task in sorted(disk.open_copies):
            disk.close(task, self.now_ms)

    def kill(self, process: int) -> None:
        """Kill a process; its state falls back to the last checkpoints."""
        for thread in self._of(process):
            if thread.is_up:
                self.end(thread, "kill", failed=False)
        self.disks[process].crash(self.now_ms)

    def pause(self, process: int, ms: int | None = None) -> None:
        """Pause a process: it neither runs nor sends heartbeats.

        Args:
            process: which.
            ms: for how long; 1.3 of its own session timeouts by default, so that it expires.
        """
        for thread in self._of(process):
            if thread.is_up:
                if ms is None:
                    ms = thread.behaviour.session_timeout_ms * 13 // 10
                thread.paused_until_ms = self.now_ms + ms
                self.record(Happened(self.now_ms, thread.name, f"pauses for {ms} ms"))
                self.record(Hindered(self.now_ms, thread.name, Hindrance.STANDSTILL, ms))

    def slow_down(self, process: int, ms: int) -> None:
        """Delay a process between its join and its sync, like a busy thread."""
        for thread in self._of(process):
            thread.slow_ms = ms
            self.record(Happened(self.now_ms, thread.name, f"answers {ms} ms late"))
            self.record(Hindered(self.now_ms, thread.name, Hindrance.SLOW, ms))

    def lose_disk(self, process: int) -> None:
        """Empty a process' state directory, its process id included (KAFKA-10716)."""
        self.disks[process].lose()
        self.process_ids[process] += len(self.disks)
        for thread in self._of(process):
            self.record(Happened(self.now_ms, thread.name, LOSES_DISK))

    def move_coordinator(self) -> None:
        """Move the coordinator to another broker, which loads what was stored of the group."""
        self.record(Happened(self.now_ms, "", "the coordinator moves"))
        absorb(self, self.coordinator.reload(GROUP, now_ms=self.now_ms))

    def force_rebalance(self) -> bool:
        """Let the group's leader join again, upon which a coordinator always starts a rebalance.

        A leader does so when the partitions of a topic change. Returns False if no leader is up.
        """
        leader_id = self.coordinator.describe(GROUP).leader_id
        leader = next((t for t in self.threads if t.is_up and t.member_id == leader_id), None)
        if leader is None:
            return False
        self.record(Happened(self.now_ms, leader.name, "forces a rebalance"))
        leader.rejoin_needed, leader.cause = True, Cause.FORCED
        poll_later(self, leader)
        return True

    def restart(self, process: int) -> None:
        """Start a process that is down, with its former release and pin."""
        behaviour = self._of(process)[0].behaviour
        if not self.is_up(process):
            self.start(process, behaviour.release.name, behaviour.upgrade_from)

    def kill_leader(self, down_ms: int) -> None:
        """Kill the process that leads, and start it again later."""
        thread = self.leader()
        if thread is not None:
            self.kill(thread.process)
            self.do_later(down_ms, "restart", thread.process)

    def do_later(self, delay_ms: int, action: str, *arguments: object) -> None:
        """Let an operator or a fault act later: the name of a method, and its arguments."""
        self.scheduler.schedule(delay_ms, "do", -1, (action, *arguments))

    def leader(self) -> StreamThread | None:
        """The thread that led last and is up, if there is one."""
        return next((t for t in self.threads if t.is_up and t.leads), None)

    def is_up(self, process: int) -> bool:
        """Whether any thread of the process runs."""
        return any(thread.is_up for thread in self._of(process))

    # What happens

    def dispatch(self, pending: Pending) -> None:
        """Let a pending event take effect; it is out of the queue already."""
        _, _, kind, target, data = pending
        if kind == "do":
            action, *arguments = data
            _ACTIONS[action](self, *arguments)
            return
        if kind in self.handlers:
            self.handlers[kind](pending)
            return
        thread = self.threads[target]
        if kind == "request":
            request, token = data
            if token[1] != self.threads[target].incarnation and not isinstance(request, LeaveGroup):
                return  # the connection ended with the thread
            absorb(self, self.coordinator.handle(request, token=token, now_ms=self.now_ms))
            return
        if thread.paused_until_ms > self.now_ms:
            delay_ms = thread.paused_until_ms - self.now_ms
            self.scheduler.schedule(delay_ms, kind, target, data)
            return
        if data[0] == thread.incarnation:
            _HAPPENS[kind](self, thread, *data[1:])

    def _of(self, process: int) -> list[StreamThread]:
        threads = self.setup.threads
        return self.threads[process * threads : (process + 1) * threads]


def _on_answer(world: World, thread: StreamThread, number: int, response: Response | None) -> None:
    if number != thread.request:
        return
    match response:
        case None:
            consumer.on_connection_lost(world, thread)
        case JoinAnswer():
            consumer.on_join(world, thread, response)
        case SyncAnswer():
            assignment.on_sync(world, thread, response)
        case _:
            pass


def _on_poll(world: World, thread: StreamThread, number: int) -> None:
    if number == thread.polls:
        consumer.poll(world, thread)


def _on_beat(world: World, thread: StreamThread, number: int) -> None:
    if number == thread.beats:
        consumer.beat(world, thread)


_HAPPENS: dict[str, Callable[..., None]] = {
    "answer": _on_answer,
    "poll": _on_poll,
    "beat": _on_beat,
    "fire": assignment.fire,
    "followup": assignment.on_followup_due,
}
_ACTIONS: dict[str, Callable[..., None]] = {
    "start": World.start,
    "restart": World.restart,
    "stop": World.stop,
    "kill": World.kill,
    "kill_leader": World.kill_leader,
    "pause": World.pause,
    "slow_down": World.slow_down,
    "lose_disk": World.lose_disk,
    "move_coordinator": World.move_coordinator,
}
