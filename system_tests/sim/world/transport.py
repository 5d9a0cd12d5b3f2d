"""How members and coordinator reach each other: messages with delays, timers, lost connections.

What the network may do to a message is drawn here and nowhere else. A lost request and a lost
answer look the same to the thread that waits: its connection is gone, and whether the coordinator
heard it, nobody knows.
"""

from collections.abc import Sequence
from typing import Any

from system_tests.coordinator import Answer, Coordinator, Effects, EventKind, Request, Response
from system_tests.sim.events import Happened, Happening, Hindered, Hindrance
from system_tests.sim.world.scheduler import Scheduler
from system_tests.sim.world.setup import INSTANCE, WorldSetup, make_thread
from system_tests.sim.world.thread import StreamThread

_UNSETTLING = frozenset({EventKind.REBALANCE_STARTED, EventKind.GROUP_EMPTIED})


class Transport:
    """The coordinator, the threads, and all that is on its way between them.

    Attributes:
        setup: what the world was made of.
        scheduler: clock, dice, what is going to happen.
        network: how messages fare now.
        coordinator: of the one group.
        threads: every thread, process by process.
        names: member id -> thread, for the trace.
        trace: what happened, in order.
        is_stable: the coordinator has the leader's answer, and no rebalance is running.
        next_leaders: lanes that a coordinator in need of a leader takes, the first that is there;
            where none of them is, the dice decide.
    """

    def __init__(self, setup: WorldSetup) -> None:
        """Make a coordinator that knows nobody and threads that are not up."""
        self.setup = setup
        self.scheduler = Scheduler(setup.seed)
        self.network = setup.network
        self.next_leaders: tuple[str, ...] = ()
        self.coordinator = Coordinator(
            setup.broker, self._new_member_id, choose_leader=self._choose_leader
        )
        self.threads: list[StreamThread] = [
            make_thread(setup, process, number)
            for process in range(setup.processes)
            for number in range(setup.threads)
        ]
        self.names: dict[str, str] = {}
        self.trace: list[Happening] = []
        self.is_stable = False
        self._ids = 0

    @property
    def now_ms(self) -> int:
        """The simulated time."""
        return self.scheduler.now_ms

    def record(self, happening: Happening) -> None:
        """Add a line to the trace."""
        self.trace.append(happening)

    def send(
        self, thread: StreamThread, request: Request, *, thinks_ms: int = 0, awaited: bool = True
    ) -> None:
        """Put a request on its way; an awaited one makes every earlier answer void."""
        network, scheduler = self.network, self.scheduler
        if awaited:
            thread.request += 1
            thread.sent_copy = 0
        number = thread.request if awaited else -1
        if awaited and scheduler.happens(network.drop):
            self._lose(thread, "a request is lost")
            return
        copies = 1
        if awaited and scheduler.happens(network.duplicate):
            copies, thread.sent_copy = 2, 1
            self.record(Happened(self.now_ms, thread.name, "a request is sent twice"))
        delay_ms = thinks_ms
        for sent_copy in range(copies):
            delay_ms += self._on_the_way(thread)
            token = (thread.index, thread.life, number, sent_copy)
            scheduler.schedule(delay_ms, "request", thread.index, (request, token))

    def ask(self, thread: StreamThread, request: Request) -> Response | None:
        """Ask and be answered at once; None if the connection was lost."""
        if self.scheduler.happens(self.network.drop):
            beat_ms = thread.behaviour.heartbeat_ms
            self.record(Hindered(self.now_ms, thread.name, Hindrance.LOST, beat_ms))
            return None
        token = (thread.index, thread.life, 0, 0)
        effects = self.coordinator.handle(request, token=token, now_ms=self.now_ms)
        if not effects.events and len(effects.answers) == 1:
            return effects.answers[0].response  # nothing new, as mostly
        own = [answer for answer in effects.answers if answer.token == token]
        self._absorb(Effects(tuple(a for a in effects.answers if a not in own), effects.events))
        return own[0].response if own else None

    def later(self, thread: StreamThread, delay_ms: int, kind: str, data: object) -> None:
        """Let something happen to this life of a thread."""
        self.scheduler.schedule(delay_ms, kind, thread.index, (thread.life, data))

    def poll_later(
        self,
        thread: StreamThread,
        *,
        kind: str = "poll",
        data: tuple[object, ...] = (),
        delay_ms: int | None = None,
    ) -> None:
        """Let the thread come round to its consumer, within a poll's time."""
        if delay_ms is None:
            delay_ms = self.scheduler.delay(0, self.network.poll_ms)
        if kind == "poll":
            thread.polls += 1
            data = (thread.polls,)
        self.scheduler.schedule(delay_ms, kind, thread.index, (thread.life, *data))

    def beat_later(self, thread: StreamThread) -> None:
        """Schedule the next heartbeat; an earlier schedule is void."""
        thread.beats += 1
        beat_ms = thread.behaviour.heartbeat_ms
        delay_ms = self.scheduler.delay(beat_ms - beat_ms // 10, beat_ms)
        self.scheduler.schedule(delay_ms, "beat", thread.index, (thread.life, thread.beats))

    def _absorb(self, effects: Effects) -> None:
        for event in effects.events:
            self.trace.append(event)
            kind = event.kind
            if kind is EventKind.ASSIGNMENT_STORED:
                self.is_stable = True
            elif kind in _UNSETTLING:
                self.is_stable = False
            elif kind is EventKind.GROUP_RELOADED:
                self.is_stable = bool(event.members)
        for answer in effects.answers:
            self._deliver(answer)

    def _deliver(self, answer: Answer) -> None:
        """Put an answer on its way to the thread that waits for it."""
        token: Any = answer.token  # made by `send`
        index, life, number, sent_copy = token
        thread = self.threads[index]
        waits = (life, number, sent_copy) == (thread.life, thread.request, thread.sent_copy)
        if not waits or number < 1:
            return
        if self.scheduler.happens(self.network.drop):
            self._lose(thread, "an answer is lost")
            return
        data = (life, number, answer.response)
        self.scheduler.schedule(self._on_the_way(thread), "answer", index, data)

    def _lose(self, thread: StreamThread, what: str) -> None:
        self.record(Happened(self.now_ms, thread.name, what))
        delay_ms = self.scheduler.delay(1, self.network.reconnect_ms)
        cost_ms = delay_ms + 2 * self.network.poll_ms + 4 * self.network.longest_ms
        self.record(Hindered(self.now_ms, thread.name, Hindrance.LOST, cost_ms))
        data = (thread.life, thread.request, None)
        self.scheduler.schedule(delay_ms, "answer", thread.index, data)

    def _on_the_way(self, thread: StreamThread) -> int:
        network, scheduler = self.network, self.scheduler
        delay_ms = scheduler.delay(network.shortest_ms, network.longest_ms)
        if scheduler.happens(network.late):
            late_ms = scheduler.delay(1, network.late_ms)
            self.record(Hindered(self.now_ms, thread.name, Hindrance.LATE, late_ms))
            delay_ms += late_ms
        return delay_ms

    def _choose_leader(self, member_ids: Sequence[str]) -> str:
        """The next leader: one that was asked for, else drawn among all, as a hash map would."""
        for name in self.next_leaders:
            for member_id in member_ids:
                if self.names.get(member_id) == name:
                    return member_id
        return self.scheduler.choose(member_ids)

    def _new_member_id(self, prefix: str) -> str:
        self._ids += 1
        member_id = f"{prefix}-{self._ids}"
        self.names[member_id] = prefix.removesuffix(INSTANCE)
        return member_id
