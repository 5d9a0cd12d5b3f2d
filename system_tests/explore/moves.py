"""What may happen next in a world that stands still, and what the operator may do.

A move is one request that reaches the coordinator, one heartbeat that tells news, one wish to
rejoin that is carried out, one session that runs out, or one thing that an operator does. All
else follows inside one thread and commutes with everything.

Some orders are not told apart, because nobody could tell their outcome apart:

- the first request after a start, a heartbeat or a wish arrives at once: had it come later, so
  might have the start, the heartbeat, the wish;
- a follower's SyncGroup that comes before the leader's waits for it, and is answered at once then;
- while a rebalance waits for its members, they come back one by one in the order of their lanes,
  and sessions run out after that. Everything else - newcomers, members that leave, crashes,
  restarts - still strikes between any two.

The operator is a careful one: bounces the next process when the group has come to rest, all
processes are up. A crashed process is started again as it was, whenever. When all is done and the
group rests, one last rebalance is forced, which nothing disturbs.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from system_tests.coordinator import GroupState, JoinGroup, SyncGroup
from system_tests.explore.world import StillWorld
from system_tests.sim import Pending, Plan
from system_tests.sim.world import Phase, StreamThread

DELIVER, BEAT, FIRE, EXPIRE, DUE = "deliver", "beat", "fire", "expire", "due"
STOP, START, CRASH, RESTART = "stop", "start", "crash", "start again"
FORCE = "force a rebalance"
OPERATOR = frozenset({STOP, START, CRASH, RESTART, FORCE})
"""Moves that stand in a runbook; the others happen by themselves."""


class Move(NamedTuple):
    """One move.

    Attributes:
        kind: one of the words above.
        who: lane of a thread; letter of a process for what an operator does.
        number: tells pending things of one thread, or its former members, apart.
        leader: whom the coordinator takes if it needs a leader; "" for the first.
    """

    kind: str
    who: str
    number: int = 0
    leader: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the operator is.

    Attributes:
        stages: process -> stages of the plan that it has been brought through.
        stopped: processes that were stopped to be bounced; crashed: that went down by themselves.
        crashes: how many more may strike.
        is_forced: the last rebalance has been forced.
    """

    stages: tuple[int, ...]
    stopped: frozenset[int] = frozenset()
    crashed: frozenset[int] = frozenset()
    crashes: int = 0
    is_forced: bool = False

    def is_done(self, plan: Plan) -> bool:
        """Whether every process has been brought through every stage, and is up."""
        return not (self.stopped or self.crashed) and min(self.stages) == len(plan.stages)


def letter(process: int) -> str:
    """Name of a process in a runbook."""
    return chr(ord("a") + process)


def group_moves(world: StillWorld, *, reduced: bool = True) -> list[Move]:
    """What may happen by itself, in a fixed order.

    Args:
        world: where.
        reduced: leave out orders that nobody could tell apart; see above.
    """
    group = world.group
    holds_syncs = reduced and group.state is GroupState.COMPLETING_REBALANCE
    found: list[Move] = []
    comers: list[Move] = []
    seen: dict[int, int] = {}
    for pending in world.scheduler.pending():
        number = seen[pending.target] = seen.get(pending.target, -1) + 1
        thread = world.threads[pending.target]
        if pending.kind == "request":
            request = pending.data[0]
            if number_of_requests_before(world, pending):
                continue  # one connection keeps its order
            if holds_syncs and isinstance(request, SyncGroup) and not thread.leads:
                continue
            is_known = isinstance(request, JoinGroup) and request.member_id in group.members
            is_comer = is_known or isinstance(request, SyncGroup)
            (comers if is_comer else found).append(Move(DELIVER, thread.name, number))
        elif (pending.kind == "fire" and may_fire(world, thread)) or (
            pending.kind == "followup" and pending.due_ms <= world.now_ms
        ):
            found.append(Move(FIRE, thread.name, number))
    comers += [Move(BEAT, t.name) for t in world.threads if hears_news(world, t)]
    comers.sort(key=lambda move: move.who)
    comers += [Move(EXPIRE, world.names[m], int(m.rsplit("-", 1)[1])) for m in orphans(world)]
    if reduced and group.state is GroupState.PREPARING_REBALANCE:
        return found + comers[:1]
    return found + comers or _timers(world)


def number_of_requests_before(world: StillWorld, pending: Pending) -> int:
    """How many requests of the same thread are on their way before this one."""
    return sum(
        other.kind == "request" and other.target == pending.target and other < pending
        for other in world.scheduler.unordered()
    )


def may_fire(world: StillWorld, thread: StreamThread) -> bool:
    """Whether a wish to rejoin would change anything now."""
    behaviour = thread.behaviour
    if thread.rejoin_needed:
        return False
    if thread.phase is not Phase.STABLE:
        return behaviour.fires_during_rebalance and not thread.rejoin_after
    waits = not (behaviour.fires_during_rebalance or behaviour.forces_by_leaving)
    return not waits or world.is_rebalance_over()


def hears_news(world: StillWorld, thread: StreamThread) -> bool:
    """Whether the next heartbeat of a thread is answered with anything but "go on"."""
    if thread.phase is not Phase.STABLE or thread.rejoin_needed:
        return False
    group = world.group
    is_current = thread.generation == group.generation
    is_member = thread.member_id in group.members
    return not (is_member and is_current) or group.state is GroupState.PREPARING_REBALANCE


def orphans(world: StillWorld) -> list[str]:
    """Members, and ids that were handed out, whose owner will never be heard of again."""
    group = world.group
    alive = {thread.member_id for thread in world.threads if thread.is_up}
    silent = [i for i in group.pending_deadline_by_id if i not in alive]
    silent += [i for i, m in group.members.items() if i not in alive and not m.is_waiting]
    return sorted(silent)


def _timers(world: StillWorld) -> list[Move]:
    """Timers that run for minutes come when nothing else can."""
    return [
        Move(DUE, world.threads[pending.target].name)
        for pending in world.scheduler.pending()
        if pending.kind == "followup"
    ]


def operator_moves(world: StillWorld, progress: Progress, plan: Plan, *, rests: bool) -> list[Move]:
    """What an operator, or a crash, may do now.

    Args:
        world: where.
        progress: how far the operator is.
        plan: what is to be done.
        rests: the group has come to rest, and nothing happens by itself.
    """
    if progress.is_forced:
        return []
    if rests and progress.is_done(plan):
        return [Move(FORCE, "")]
    found = [Move(START, letter(process)) for process in sorted(progress.stopped)]
    found += [Move(RESTART, letter(process)) for process in sorted(progress.crashed)]
    processes = range(len(progress.stages))
    if rests and not found:
        stage = min(progress.stages)
        if stage < len(plan.stages):
            found += [Move(STOP, letter(p)) for p in processes if progress.stages[p] == stage]
    if progress.crashes:
        found += [Move(CRASH, letter(p)) for p in processes if world.is_up(p)]
    return found


def act(world: StillWorld, progress: Progress, plan: Plan, move: Move) -> Progress:
    """Let an operator do something; returns how far the operator is then."""
    if move.kind == FORCE:
        world.force_rebalance()
        return replace(progress, is_forced=True)
    process = ord(move.who) - ord("a")
    one = frozenset({process})
    match move.kind:
        case "stop":
            world.stop(process)
            return replace(progress, stopped=progress.stopped | one)
        case "start":
            stage = plan.stages[progress.stages[process]]
            world.start(process, stage.release, stage.upgrade_from)
            stages = tuple(s + (p == process) for p, s in enumerate(progress.stages))
            return replace(progress, stages=stages, stopped=progress.stopped - one)
        case "crash":
            world.kill(process)
            crashes = progress.crashes - 1
            return replace(progress, crashed=progress.crashed | one, crashes=crashes)
        case _:
            world.restart(process)
            return replace(progress, crashed=progress.crashed - one)


def happen(world: StillWorld, move: Move) -> None:
    """Let something happen by itself."""
    match move.kind:
        case "beat":
            world.beat(_thread(world, move))
        case "expire":
            prefix = next(m for m in world.names if _is(m, move, world.names[m]))
            world.expire(prefix)
        case _:
            thread = _thread(world, move)
            mine = [p for p in world.scheduler.pending() if p.target == thread.index]
            if move.kind == DUE:
                mine = [pending for pending in mine if pending.kind == "followup"]
            world.come_due(mine[move.number])


def send_at_once(world: StillWorld, move: Move) -> None:
    """Let the first request that follows from a move arrive."""
    if move.kind in (BEAT, FIRE):
        lanes = [_thread(world, move)]
    elif move.kind == FORCE:
        lanes = list(world.threads)
    elif move.kind in (START, RESTART):
        lanes = [t for t in world.threads if t.process == ord(move.who) - ord("a")]
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
    return name == move.who and int(member_id.rsplit("-", 1)[1]) == move.number


def _thread(world: StillWorld, move: Move) -> StreamThread:
    return next(thread for thread in world.threads if thread.name == move.who)
