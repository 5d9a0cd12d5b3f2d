"""How each disturbance is done: the hands of a soak.

Every strike ends with the group whole again, as far as it is the operator's to make it whole: who
was paused goes on, faults are lifted, brokers run. Whether the group itself recovers is what the
caller waits for. Faults of the broker are shorter than half a session, so that nobody is put out
for being cut off: two owners at a time are excused by a stall alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from time import monotonic
from types import MappingProxyType
from typing import Final, Protocol

from system_tests.broker import Fault, RunningBroker
from system_tests.live import Crew, Stage, bounce_order
from system_tests.soak.environment import Ground
from system_tests.soak.options import SoakOptions
from system_tests.soak.schedule import Disturbance, Kind
from system_tests.soak.tally import Stall

# Loading, not available, not coordinator; a broker that loads answers heartbeats blindly.
_UNAVAILABLE: Final = MappingProxyType(
    {
        14: ("JoinGroup", "OffsetCommit", "OffsetFetch"),
        15: ("FindCoordinator", "Heartbeat", "JoinGroup", "OffsetCommit", "SyncGroup"),
        16: ("Heartbeat", "JoinGroup", "OffsetCommit", "OffsetFetch", "SyncGroup"),
    }
)
_ANSWERS_LOST: Final = (*_UNAVAILABLE[15], "Fetch", "Produce")
_MANY: Final = 1_000
_CUTS_MAX = 30
_SLOW_MAX_MS = 400
_NODES: Final = (1, 2)
_EXPIRED_SESSIONS = 1.5
_SESSION_SHARE_MAX = 0.5


class Life(Protocol):
    """What a strike needs of the soak around it."""

    crew: Crew
    stage: Stage
    options: SoakOptions
    ground: Ground
    dice: Random

    def settle(self, *, since_ms: float) -> None:
        """Wait until the group has recovered from what was done at `since_ms`."""

    def let_pass(self, seconds: float) -> None:
        """Go on listening for a while."""

    def note_stall(self, stall: Stall) -> None:
        """Somebody knows nothing of what happened meanwhile."""


def strike(life: Life, disturbance: Disturbance) -> None:
    """Do it.

    Raises:
        MemberDiedError, NotInTimeError: a member ended by itself, or did not end when asked.
    """
    _STRIKES[disturbance.kind](life, disturbance)


def now_ms() -> float:
    """Read the clock that all reports are stamped with."""
    return monotonic() * 1000


# Members


def _bounce(life: Life, disturbance: Disturbance) -> None:
    crew = life.crew
    names = [m.name for m in crew.group.alive if m.name not in life.options.long_lived]
    order = bounce_order(disturbance.order, names, leader=crew.group.leader, dice=life.dice)
    crew.say(f"bounce to {life.stage.describe()}, order {' '.join(order)}")
    for name in order:
        since_ms = now_ms()
        crew.stop(name)
        crew.start(name, life.stage)
        life.settle(since_ms=since_ms)


def _kill(life: Life, disturbance: Disturbance) -> None:
    _kill_one(life, disturbance.victim or "", at_once=disturbance.at_once)


def _kill_leader(life: Life, disturbance: Disturbance) -> None:
    long_lived = life.options.long_lived
    if life.crew.group.leader in (None, *long_lived):
        life.crew.say("members that are to live long are paused, so that another one leads")
        _pause_all(life, long_lived, sessions=_EXPIRED_SESSIONS)
    leader = life.crew.group.leader
    if leader is not None and leader not in long_lived:
        _kill_one(life, leader, at_once=disturbance.at_once)


def _kill_one(life: Life, name: str, *, at_once: bool) -> None:
    since_ms = now_ms()
    life.crew.kill(name)
    if not at_once:
        life.settle(since_ms=since_ms)
    life.crew.start(name, life.stage)
    life.settle(since_ms=since_ms if at_once else now_ms())


def _pause(life: Life, disturbance: Disturbance) -> None:
    share = 0.1 + _SESSION_SHARE_MAX * disturbance.share
    _pause_all(life, (disturbance.victim or "",), sessions=share)


def _pause_long(life: Life, disturbance: Disturbance) -> None:
    sessions = _EXPIRED_SESSIONS + disturbance.share
    _pause_all(life, (disturbance.victim or "",), sessions=sessions)


def _pause_leader(life: Life, disturbance: Disturbance) -> None:
    leader = life.crew.group.leader or life.options.names[0]
    _pause_all(life, (leader,), sessions=_EXPIRED_SESSIONS + disturbance.share)


def _pause_all(life: Life, names: Sequence[str], *, sessions: float) -> None:
    lives = [(name, life.crew.group.members[name].incarnation) for name in names]
    from_ms = now_ms()
    for name in names:
        life.crew.pause(name)
    try:
        life.let_pass(sessions * life.options.session_timeout_ms / 1000)
    finally:
        for name in names:
            life.crew.resume(name)
        to_ms = now_ms()
        for one in lives:
            life.note_stall(Stall(life=one, from_ms=from_ms, to_ms=to_ms))
    life.settle(since_ms=to_ms)


def _grow(life: Life, disturbance: Disturbance) -> None:
    since_ms = now_ms()
    life.crew.start(disturbance.victim or "", life.stage)
    life.settle(since_ms=since_ms)


def _shrink(life: Life, disturbance: Disturbance) -> None:
    since_ms = now_ms()
    life.crew.stop(disturbance.victim or "")
    life.settle(since_ms=since_ms)


# The embedded broker


def _cut(life: Life, disturbance: Disturbance) -> None:
    times = 1 + round(_CUTS_MAX * disturbance.share)
    _fail(life, disturbance, Fault(drop=True, times=times), f"the next {times} requests are cut")


def _slow(life: Life, disturbance: Disturbance) -> None:
    delay_ms = 20 + round(_SLOW_MAX_MS * disturbance.share)
    fault = Fault(delay_ms=delay_ms, times=_MANY)
    _fail(life, disturbance, fault, f"every answer takes {delay_ms} ms longer")


def _lose(life: Life, disturbance: Disturbance) -> None:
    api = life.dice.choice(_ANSWERS_LOST)
    times = 1 + round(4 * disturbance.share)
    fault = Fault(api=api, lose_answer=True, times=times)
    _fail(life, disturbance, fault, f"{times} answers to {api} are lost")


def _refuse(life: Life, disturbance: Disturbance) -> None:
    error = life.dice.choice(sorted(_UNAVAILABLE))
    faults = [Fault(api=api, error=error, times=_MANY) for api in _UNAVAILABLE[error]]
    _fail(life, disturbance, *faults, f"the coordinator answers with error {error}")


def _fail(life: Life, disturbance: Disturbance, *what: Fault | str) -> None:
    """Put faults in force for a part of a session, with a member that comes back meanwhile or not.

    Args:
        life: of the soak.
        disturbance: the victim is restarted; `share` of half a session is how long they last.
        what: faults, and what they are called.
    """
    crew = life.crew
    if disturbance.victim is not None:
        crew.stop(disturbance.victim)
    for one in what:
        if isinstance(one, str):
            crew.say(one)
    with _faults(_embedded(life), [one for one in what if isinstance(one, Fault)]):
        if disturbance.victim is not None:
            crew.start(disturbance.victim, life.stage)
        life.let_pass(_hold_s(life, disturbance))
    crew.say("the faults are lifted")
    life.settle(since_ms=now_ms())


@contextmanager
def _faults(broker: RunningBroker, faults: list[Fault]) -> Iterator[None]:
    for fault in faults:
        broker.inject(fault)
    try:
        yield
    finally:
        broker.clear_faults()


def _move(life: Life, disturbance: Disturbance) -> None:
    del disturbance
    broker, group_id = _embedded(life), life.ground.world.group_id
    now = broker.coordinator_of(group_id)
    life.crew.say("another broker coordinates the group")
    since_ms = now_ms()
    broker.move_coordinator(group_id, next(node for node in _NODES if node != now))
    life.settle(since_ms=since_ms)


def _node_down(life: Life, disturbance: Disturbance) -> None:
    broker = _embedded(life)
    node = life.dice.choice(_NODES)
    life.crew.say(f"broker {node} of {len(_NODES)} goes down")
    broker.stop_node(node)
    try:
        life.let_pass(_hold_s(life, disturbance))
    finally:
        broker.start_node(node)
    life.crew.say(f"broker {node} is back")
    life.settle(since_ms=now_ms())


def _hold_s(life: Life, disturbance: Disturbance) -> float:
    sessions = _SESSION_SHARE_MAX * (0.2 + 0.8 * disturbance.share)
    return sessions * life.options.session_timeout_ms / 1000


def _embedded(life: Life) -> RunningBroker:
    if life.ground.embedded is None:
        raise RuntimeError("a real broker takes no orders; the schedule drew the wrong kind")
    return life.ground.embedded


# A real broker


def _restart(life: Life, disturbance: Disturbance) -> None:
    if life.ground.real is None:
        raise RuntimeError("the embedded broker is no process; the schedule drew the wrong kind")
    end = {Kind.RESTART: life.ground.real.stop, Kind.CRASH: life.ground.real.kill}
    life.crew.say("the broker is " + ("killed" if disturbance.kind is Kind.CRASH else "stopped"))
    try:
        end[disturbance.kind]()
        life.let_pass(disturbance.share)
    finally:
        life.ground.real.start()
    life.crew.say("the broker is back")
    life.settle(since_ms=now_ms())


def _freeze(life: Life, disturbance: Disturbance) -> None:
    if life.ground.real is None:
        raise RuntimeError("the embedded broker is no process; the schedule drew the wrong kind")
    life.crew.say("the broker is paused (SIGSTOP)")
    life.ground.real.pause()
    try:
        life.let_pass(_hold_s(life, disturbance))
    finally:
        life.ground.real.resume()
    life.crew.say("the broker goes on (SIGCONT)")
    life.settle(since_ms=now_ms())


_STRIKES: Final[Mapping[Kind, Callable[[Life, Disturbance], None]]] = {
    Kind.BOUNCE: _bounce,
    Kind.KILL: _kill,
    Kind.KILL_LEADER: _kill_leader,
    Kind.PAUSE: _pause,
    Kind.PAUSE_LONG: _pause_long,
    Kind.PAUSE_LEADER: _pause_leader,
    Kind.GROW: _grow,
    Kind.SHRINK: _shrink,
    Kind.CUT: _cut,
    Kind.SLOW: _slow,
    Kind.LOSE: _lose,
    Kind.REFUSE: _refuse,
    Kind.MOVE: _move,
    Kind.NODE_DOWN: _node_down,
    Kind.RESTART: _restart,
    Kind.CRASH: _restart,
    Kind.FREEZE: _freeze,
}
