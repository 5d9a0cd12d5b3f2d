"""How members and coordinator reach each other: messages with delays, timers, lost connections.

Whatever the network does to a message is drawn here. A lost request and a lost answer look the same
to the thread that waits: its connection is closed, and it does not know whether the coordinator
got the request.
"""

from typing import Any

from system_tests.coordinator import Answer, Effects, EventKind, Request, Response
from system_tests.sim.events import Happened, Hindered, Hindrance
from system_tests.sim.world.state import WorldState
from system_tests.sim.world.thread import StreamThread

_UNSETTLING = frozenset({EventKind.REBALANCE_STARTED, EventKind.GROUP_EMPTIED})


def send(
    world: WorldState,
    thread: StreamThread,
    request: Request,
    *,
    thinks_ms: int = 0,
    awaited: bool = True,
) -> None:
    """Put a request on its way; an awaited one makes every earlier answer void."""
    network, scheduler = world.network, world.scheduler
    if awaited:
        thread.request += 1
        thread.sent_copy = 0
    number = thread.request if awaited else -1
    if awaited and scheduler.happens(network.drop):
        _lose(world, thread, "a request is lost")
        return
    copies = 1
    if awaited and scheduler.happens(network.duplicate):
        copies, thread.sent_copy = 2, 1
        world.record(Happened(world.now_ms, thread.name, "a request is sent twice"))
    delay_ms = thinks_ms
    for sent_copy in range(copies):
        delay_ms += _on_the_way(world, thread)
        token = (thread.index, thread.incarnation, number, sent_copy)
        scheduler.schedule(delay_ms, "request", thread.index, (request, token))


def ask(world: WorldState, thread: StreamThread, request: Request) -> Response | None:
    """Send a request and return its answer at once; None if the connection was lost."""
    if world.scheduler.happens(world.network.drop):
        beat_ms = thread.behaviour.heartbeat_ms
        world.record(Hindered(world.now_ms, thread.name, Hindrance.LOST, beat_ms))
        return None
    token = (thread.index, thread.incarnation, 0, 0)
    effects = world.coordinator.handle(request, token=token, now_ms=world.now_ms)
    if not effects.events and len(effects.answers) == 1:
        return effects.answers[0].response  # nothing new, as mostly
    own = [answer for answer in effects.answers if answer.token == token]
    absorb(world, Effects(tuple(a for a in effects.answers if a not in own), effects.events))
    return own[0].response if own else None


def later(world: WorldState, thread: StreamThread, delay_ms: int, kind: str, data: object) -> None:
    """Schedule an event for this incarnation of a thread."""
    world.scheduler.schedule(delay_ms, kind, thread.index, (thread.incarnation, data))


def poll_later(
    world: WorldState,
    thread: StreamThread,
    *,
    kind: str = "poll",
    data: tuple[object, ...] = (),
    delay_ms: int | None = None,
) -> None:
    """Schedule the next poll of a thread, or another event at its time."""
    if delay_ms is None:
        delay_ms = world.scheduler.delay(0, world.network.poll_ms)
    if kind == "poll":
        thread.polls += 1
        data = (thread.polls,)
    world.scheduler.schedule(delay_ms, kind, thread.index, (thread.incarnation, *data))


def beat_later(world: WorldState, thread: StreamThread) -> None:
    """Schedule the next heartbeat; an earlier schedule is void."""
    thread.beats += 1
    beat_ms = thread.behaviour.heartbeat_ms
    delay_ms = world.scheduler.delay(beat_ms - beat_ms // 10, beat_ms)
    world.scheduler.schedule(delay_ms, "beat", thread.index, (thread.incarnation, thread.beats))


def absorb(world: WorldState, effects: Effects) -> None:
    """Take over what the coordinator did: its events into the trace, its answers on their way."""
    for event in effects.events:
        world.trace.append(event)
        kind = event.kind
        if kind is EventKind.ASSIGNMENT_STORED:
            world.is_stable = True
        elif kind in _UNSETTLING:
            world.is_stable = False
        elif kind is EventKind.GROUP_RELOADED:
            world.is_stable = bool(event.members)
    for answer in effects.answers:
        _deliver(world, answer)


def _deliver(world: WorldState, answer: Answer) -> None:
    """Put an answer on its way to the thread that waits for it."""
    token: Any = answer.token  # made by `send`
    index, incarnation, number, sent_copy = token
    thread = world.threads[index]
    waits = (incarnation, number, sent_copy) == (
        thread.incarnation,
        thread.request,
        thread.sent_copy,
    )
    if not waits or number < 1:
        return
    if world.scheduler.happens(world.network.drop):
        _lose(world, thread, "an answer is lost")
        return
    data = (incarnation, number, answer.response)
    world.scheduler.schedule(_on_the_way(world, thread), "answer", index, data)


def _lose(world: WorldState, thread: StreamThread, what: str) -> None:
    world.record(Happened(world.now_ms, thread.name, what))
    delay_ms = world.scheduler.delay(1, world.network.reconnect_ms)
    cost_ms = delay_ms + 2 * world.network.poll_ms + 4 * world.network.longest_ms
    world.record(Hindered(world.now_ms, thread.name, Hindrance.LOST, cost_ms))
    data = (thread.incarnation, thread.request, None)
    world.scheduler.schedule(delay_ms, "answer", thread.index, data)


def _on_the_way(world: WorldState, thread: StreamThread) -> int:
    network, scheduler = world.network, world.scheduler
    delay_ms = scheduler.delay(network.shortest_ms, network.longest_ms)
    if scheduler.happens(network.late):
        late_ms = scheduler.delay(1, network.late_ms)
        world.record(Hindered(world.now_ms, thread.name, Hindrance.LATE, late_ms))
        delay_ms += late_ms
    return delay_ms
