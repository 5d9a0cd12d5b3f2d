"""How each disturbance is applied to the group or to its broker.

Every disturbance undoes its own effect: a paused member is resumed, faults are removed, brokers
run again. Whether the group itself recovers is what `settle` waits for. Faults of the broker are
shorter than half a session, so that no member is removed because of them: two owners at a time are
excused only after a pause of a member.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from time import monotonic
from types import MappingProxyType
from typing import Final, Protocol

from system_tests.broker import Fault, RunningBroker
from system_tests.live import Members, Stage, bounce_order
from system_tests.soak.environment import SoakEnvironment
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


class DisturbedSoak(Protocol):
    """What a disturbance needs of the soak."""

    members: Members
    stage: Stage
    options: SoakOptions
    environment: SoakEnvironment
    rng: Random

    def settle(self, *, since_ms: float) -> None:
        """Wait until the group has recovered from what was done at `since_ms`."""

    def let_pass(self, seconds: float) -> None:
        """Read reports for this long."""

    def note_stall(self, stall: Stall) -> None:
        """Record that a member was paused."""


def apply_disturbance(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    """Disturb the group, and wait until it has recovered.

    Raises:
        MemberDiedError, NotInTimeError: a member ended by itself, or did not end when asked.
    """
    _ACTIONS[disturbance.kind](soak, disturbance)


def now_ms() -> float:
    """Return monotonic milliseconds, the clock of all reports."""
    return monotonic() * 1000


# Members


def _bounce(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    members = soak.members
    names = [m.name for m in members.view.alive if m.name not in soak.options.long_lived]
    order = bounce_order(disturbance.order, names, leader=members.view.leader, rng=soak.rng)
    members.say(f"bounce to {soak.stage.describe()}, order {' '.join(order)}")
    for name in order:
        since_ms = now_ms()
        members.stop(name)
        members.start(name, soak.stage)
        soak.settle(since_ms=since_ms)


def _kill(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    _kill_member(soak, disturbance.victim or "", at_once=disturbance.at_once)


def _kill_leader(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    long_lived = soak.options.long_lived
    if soak.members.view.leader in (None, *long_lived):
        soak.members.say("the long-lived members are paused, so that another one leads")
        _pause_all(soak, long_lived, sessions=_EXPIRED_SESSIONS)
    leader = soak.members.view.leader
    if leader is not None and leader not in long_lived:
        _kill_member(soak, leader, at_once=disturbance.at_once)


def _kill_member(soak: DisturbedSoak, name: str, *, at_once: bool) -> None:
    since_ms = now_ms()
    soak.members.kill(name)
    if not at_once:
        soak.settle(since_ms=since_ms)
    soak.members.start(name, soak.stage)
    soak.settle(since_ms=since_ms if at_once else now_ms())


def _pause(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    share = 0.1 + _SESSION_SHARE_MAX * disturbance.share
    _pause_all(soak, (disturbance.victim or "",), sessions=share)


def _pause_long(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    sessions = _EXPIRED_SESSIONS + disturbance.share
    _pause_all(soak, (disturbance.victim or "",), sessions=sessions)


def _pause_leader(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    leader = soak.members.view.leader or soak.options.names[0]
    _pause_all(soak, (leader,), sessions=_EXPIRED_SESSIONS + disturbance.share)


def _pause_all(soak: DisturbedSoak, names: Sequence[str], *, sessions: float) -> None:
    incarnations = [(name, soak.members.view.members[name].incarnation) for name in names]
    from_ms = now_ms()
    for name in names:
        soak.members.pause(name)
    try:
        soak.let_pass(sessions * soak.options.session_timeout_ms / 1000)
    finally:
        for name in names:
            soak.members.resume(name)
        to_ms = now_ms()
        for incarnation in incarnations:
            soak.note_stall(Stall(incarnation=incarnation, from_ms=from_ms, to_ms=to_ms))
    soak.settle(since_ms=to_ms)


def _grow(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    since_ms = now_ms()
    soak.members.start(disturbance.victim or "", soak.stage)
    soak.settle(since_ms=since_ms)


def _shrink(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    since_ms = now_ms()
    soak.members.stop(disturbance.victim or "")
    soak.settle(since_ms=since_ms)


# The embedded broker


def _cut(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    times = 1 + round(_CUTS_MAX * disturbance.share)
    _fail(soak, disturbance, f"the next {times} requests are cut", Fault(drop=True, times=times))


def _slow(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    delay_ms = 20 + round(_SLOW_MAX_MS * disturbance.share)
    fault = Fault(delay_ms=delay_ms, times=_MANY)
    _fail(soak, disturbance, f"every answer takes {delay_ms} ms longer", fault)


def _lose(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    api = soak.rng.choice(_ANSWERS_LOST)
    times = 1 + round(4 * disturbance.share)
    fault = Fault(api=api, lose_answer=True, times=times)
    _fail(soak, disturbance, f"{times} answers to {api} are lost", fault)


def _refuse(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    error = soak.rng.choice(sorted(_UNAVAILABLE))
    faults = [Fault(api=api, error=error, times=_MANY) for api in _UNAVAILABLE[error]]
    _fail(soak, disturbance, f"the coordinator answers with error {error}", *faults)


def _fail(soak: DisturbedSoak, disturbance: Disturbance, sentence: str, *faults: Fault) -> None:
    """Inject faults for a part of a session, while the victim, if any, is restarted.

    Args:
        soak: that is disturbed.
        disturbance: its `share` of half a session is how long the faults last.
        sentence: names the faults in the trace.
        faults: of the embedded broker.
    """
    members = soak.members
    if disturbance.victim is not None:
        members.stop(disturbance.victim)
    members.say(sentence)
    with _faults(_embedded(soak), faults):
        if disturbance.victim is not None:
            members.start(disturbance.victim, soak.stage)
        soak.let_pass(_hold_s(soak, disturbance))
    members.say("the faults are removed")
    soak.settle(since_ms=now_ms())


@contextmanager
def _faults(broker: RunningBroker, faults: Sequence[Fault]) -> Iterator[None]:
    for fault in faults:
        broker.inject(fault)
    try:
        yield
    finally:
        broker.clear_faults()


def _move(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    del disturbance
    broker, group_id = _embedded(soak), soak.environment.names.group_id
    now = broker.coordinator_of(group_id)
    soak.members.say("another broker coordinates the group")
    since_ms = now_ms()
    broker.move_coordinator(group_id, next(node for node in _NODES if node != now))
    soak.settle(since_ms=since_ms)


def _node_down(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    broker = _embedded(soak)
    node = soak.rng.choice(_NODES)
    soak.members.say(f"broker {node} of {len(_NODES)} goes down")
    broker.stop_node(node)
    try:
        soak.let_pass(_hold_s(soak, disturbance))
    finally:
        broker.start_node(node)
    soak.members.say(f"broker {node} is back")
    soak.settle(since_ms=now_ms())


def _hold_s(soak: DisturbedSoak, disturbance: Disturbance) -> float:
    sessions = _SESSION_SHARE_MAX * (0.2 + 0.8 * disturbance.share)
    return sessions * soak.options.session_timeout_ms / 1000


def _embedded(soak: DisturbedSoak) -> RunningBroker:
    if soak.environment.embedded is None:
        raise RuntimeError("a real broker has no injected faults; the schedule drew the wrong kind")
    return soak.environment.embedded


# A real broker


def _restart(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    if soak.environment.real is None:
        raise RuntimeError(
            "the embedded broker has no process of its own; the schedule drew the wrong kind"
        )
    end = {Kind.RESTART: soak.environment.real.stop, Kind.CRASH: soak.environment.real.kill}
    soak.members.say("the broker is " + ("killed" if disturbance.kind is Kind.CRASH else "stopped"))
    try:
        end[disturbance.kind]()
        soak.let_pass(disturbance.share)
    finally:
        soak.environment.real.start()
    soak.members.say("the broker is back")
    soak.settle(since_ms=now_ms())


def _freeze(soak: DisturbedSoak, disturbance: Disturbance) -> None:
    if soak.environment.real is None:
        raise RuntimeError(
            "the embedded broker has no process of its own; the schedule drew the wrong kind"
        )
    soak.members.say("the broker is paused (SIGSTOP)")
    soak.environment.real.pause()
    try:
        soak.let_pass(_hold_s(soak, disturbance))
    finally:
        soak.environment.real.resume()
    soak.members.say("the broker is resumed (SIGCONT)")
    soak.settle(since_ms=now_ms())


_ACTIONS: Final[Mapping[Kind, Callable[[DisturbedSoak, Disturbance], None]]] = {
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
