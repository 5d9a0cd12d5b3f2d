"""Moves: the next possible steps of the group and of the operator.

A move is one of:

- a request that reaches the coordinator;
- a heartbeat whose response is an error (rebalance in progress, unknown member);
- a scheduled rejoin that is sent;
- a session that expires;
- an action of the operator, or a crash.

All other steps happen inside one thread; their order does not change the result.

Orders with the same result are explored once:

- The first request after a start, a heartbeat or a scheduled rejoin arrives at once. A later
  arrival equals a later start, heartbeat or rejoin.
- A follower's SyncGroup that arrives before the leader's waits for it and is answered right after.
- While a rebalance waits for members to rejoin, they rejoin in the order of their lanes, and
  sessions expire after that. New members, leaving members, crashes and restarts may still occur
  between any two of them.

The operator bounces the next process only when the group is stable and all processes are up. In a
stage that waits for sessions, a stopped process is started after its members have expired. A
crashed process is restarted at any later moment, on the same release. After the last bounce, when
the group is stable, one undisturbed rebalance is forced.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from system_tests.coordinator import GroupState, JoinGroup, SyncGroup
from system_tests.engine import Pending
from system_tests.explore.world import SearchWorld
from system_tests.sim import Plan
from system_tests.sim.world import Phase, StreamThread, has_forgotten

DELIVER, BEAT, FIRE, EXPIRE, DUE = "deliver", "beat", "fire", "expire", "due"
STOP, START, CRASH, RESTART = "stop", "start", "crash", "start again"
FORCE = "force a rebalance"
OPERATOR = frozenset({STOP, START, CRASH, RESTART, FORCE})
"""Moves that a runbook lists; all others happen without an operator."""


class Move(NamedTuple):
    """One move.

    Attributes:
        kind: one of the constants above.
        subject: lane of a thread; for an action of the operator, the letter of a process.
        number: index of the pending event of the thread; for a session, the member id's number.
        leader: lane that the coordinator chooses if it needs a leader; "" for the first one.
    """

    kind: str
    subject: str
    number: int = 0
    leader: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of the operator.

    Attributes:
        stages: number of completed stages of the plan, by process.
        stopped: processes that the operator stopped and has not started again.
        crashed: processes that crashed and are still down.
        crashes: number of crashes that may still occur.
        is_forced: the last rebalance has been forced.
    """

    stages: tuple[int, ...]
    stopped: frozenset[int] = frozenset()
    crashed: frozenset[int] = frozenset()
    crashes: int = 0
    is_forced: bool = False

    def is_done(self, plan: Plan) -> bool:
        """Whether every process has completed every stage and is up."""
        return not (self.stopped or self.crashed) and min(self.stages) == len(plan.stages)


def letter(process: int) -> str:
    """Return the name of a process in a runbook."""
    return chr(ord("a") + process)


def group_moves(world: SearchWorld, *, reduced: bool = True) -> list[Move]:
    """Return the possible moves that need no operator, in a fixed order.

    Args:
        world: the simulated world.
        reduced: leave out orders with the same result as another order; see above.
    """
    group = world.group
    holds_syncs = reduced and group.state is GroupState.COMPLETING_REBALANCE
    found: list[Move] = []
    rejoining: list[Move] = []
    counts: dict[int, int] = {}
    for pending in world.scheduler.pending():
        number = counts[pending.target] = counts.get(pending.target, -1) + 1
        thread = world.threads[pending.target]
        if pending.kind == "request":
            request = pending.data[0]
            if requests_before(world, pending):
                continue  # one connection keeps its order
            if holds_syncs and isinstance(request, SyncGroup) and not thread.leads:
                continue
            is_known = isinstance(request, JoinGroup) and request.member_id in group.members
            is_rejoin = is_known or isinstance(request, SyncGroup)
            (rejoining if is_rejoin else found).append(Move(DELIVER, thread.name, number))
        elif (pending.kind == "fire" and may_rejoin(world, thread)) or (
            pending.kind == "followup" and pending.due_ms <= world.now_ms
        ):
            found.append(Move(FIRE, thread.name, number))
    rejoining += [Move(BEAT, t.name) for t in world.threads if is_heartbeat_rejected(world, t)]
    rejoining.sort(key=lambda move: move.subject)
    names = world.member_ids.names
    rejoining += [Move(EXPIRE, names[m], int(m.rsplit("-", 1)[1])) for m in silent_members(world)]
    if reduced and group.state is GroupState.PREPARING_REBALANCE:
        return found + rejoining[:1]
    return found + rejoining or _timers(world)


def requests_before(world: SearchWorld, pending: Pending) -> int:
    """Return the number of earlier requests of the same thread that have not arrived."""
    return sum(
        other.kind == "request" and other.target == pending.target and other < pending
        for other in world.scheduler.unordered()
    )


def may_rejoin(world: SearchWorld, thread: StreamThread) -> bool:
    """Whether a scheduled rejoin of a thread would change anything now."""
    behaviour = thread.behaviour
    if thread.rejoin_needed:
        return False
    if thread.phase is not Phase.STABLE:
        return behaviour.fires_during_rebalance and not thread.rejoin_after
    waits = not (behaviour.fires_during_rebalance or behaviour.forces_by_leaving)
    return not waits or world.is_rebalance_over()


def is_heartbeat_rejected(world: SearchWorld, thread: StreamThread) -> bool:
    """Whether the response to the next heartbeat of a thread is an error."""
    if thread.phase is not Phase.STABLE or thread.rejoin_needed:
        return False
    group = world.group
    is_current = thread.generation == group.generation
    is_member = thread.member_id in group.members
    return not (is_member and is_current) or group.state is GroupState.PREPARING_REBALANCE


def silent_members(world: SearchWorld) -> list[str]:
    """Return the ids of members, joined or pending, that no running thread uses; sorted."""
    group = world.group
    alive = {thread.member_id for thread in world.threads if thread.is_up}
    silent = [i for i in group.pending_deadline_by_id if i not in alive]
    silent += [i for i, m in group.members.items() if i not in alive and not m.is_waiting]
    return sorted(silent)


def _timers(world: SearchWorld) -> list[Move]:
    """Return moves for long timers; they expire only if no other move is possible."""
    return [
        Move(DUE, world.threads[pending.target].name)
        for pending in world.scheduler.pending()
        if pending.kind == "followup"
    ]


def operator_moves(
    world: SearchWorld, progress: Progress, plan: Plan, *, rests: bool
) -> list[Move]:
    """Return the possible actions of the operator, and crashes.

    Args:
        world: the simulated world.
        progress: progress of the operator.
        plan: bounces of the operator.
        rests: the group is stable, and no move happens without an operator.
    """
    if progress.is_forced:
        return []
    if rests and progress.is_done(plan):
        return [Move(FORCE, "")]
    found = [
        Move(START, letter(process))
        for process in sorted(progress.stopped)
        if progress.stages[process] not in plan.waits or has_forgotten(world, process)
    ]
    found += [Move(RESTART, letter(process)) for process in sorted(progress.crashed)]
    processes = range(len(progress.stages))
    if rests and not found and not progress.stopped:
        stage = min(progress.stages)
        if stage < len(plan.stages):
            found += [Move(STOP, letter(p)) for p in processes if progress.stages[p] == stage]
    if progress.crashes:
        found += [Move(CRASH, letter(p)) for p in processes if world.is_up(p)]
    return found


def act(world: SearchWorld, progress: Progress, plan: Plan, move: Move) -> Progress:
    """Do an action of the operator, or a crash; return the new progress."""
    if move.kind == FORCE:
        world.force_rebalance()
        return replace(progress, is_forced=True)
    process = ord(move.subject) - ord("a")
    alone = frozenset({process})
    match move.kind:
        case "stop":
            world.stop(process)
            return replace(progress, stopped=progress.stopped | alone)
        case "start":
            stage = plan.stages[progress.stages[process]]
            world.start(process, stage.release, stage.upgrade_from)
            stages = tuple(s + (p == process) for p, s in enumerate(progress.stages))
            return replace(progress, stages=stages, stopped=progress.stopped - alone)
        case "crash":
            world.kill(process)
            crashes = progress.crashes - 1
            return replace(progress, crashed=progress.crashed | alone, crashes=crashes)
        case _:
            world.restart(process)
            return replace(progress, crashed=progress.crashed - alone)


def happen(world: SearchWorld, move: Move) -> None:
    """Do a move that needs no operator."""
    match move.kind:
        case "beat":
            world.beat(_thread(world, move))
        case "expire":
            prefix = next(
                m for m in world.member_ids.names if _is(m, move, world.member_ids.names[m])
            )
            world.expire(prefix)
        case _:
            thread = _thread(world, move)
            own = [p for p in world.scheduler.pending() if p.target == thread.index]
            if move.kind == DUE:
                own = [pending for pending in own if pending.kind == "followup"]
            world.come_due(own[move.number])


def send_at_once(world: SearchWorld, move: Move) -> None:
    """Deliver the first request that follows from a move."""
    if move.kind in (BEAT, FIRE):
        lanes = [_thread(world, move)]
    elif move.kind == FORCE:
        lanes = list(world.threads)
    elif move.kind in (START, RESTART):
        lanes = [t for t in world.threads if t.process == ord(move.subject) - ord("a")]
    else:
        return
    for thread in lanes:
        requests = [
            p for p in world.scheduler.pending() if p.kind == "request" and p.target == thread.index
        ]
        if requests:
            world.come_due(requests[0])
            world.settle_threads()


def _is(member_id: str, move: Move, name: str) -> bool:
    return name == move.subject and int(member_id.rsplit("-", 1)[1]) == move.number


def _thread(world: SearchWorld, move: Move) -> StreamThread:
    return next(thread for thread in world.threads if thread.name == move.subject)
