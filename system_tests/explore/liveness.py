"""Liveness: cycles of moves that happen without an operator, and rules for a group at rest."""

from collections import deque
from collections.abc import Iterable, Sequence

from system_tests.engine import Broken
from system_tests.explore.moves import Move, Progress
from system_tests.explore.world import SearchWorld
from system_tests.sim import (
    Evidence,
    Plan,
    Settled,
    check_all_members_are_up,
    check_dimensions,
    check_final_version,
    check_resting_versions,
    check_step,
)
from system_tests.sim.world import rested

Edges = Sequence[tuple[Move, int]]


def endless_cycles(
    successors: Sequence[Edges], *, among: Iterable[int] | None = None
) -> list[list[int]]:
    """Return the sets of states that a group may never leave, sorted.

    A set counts if it is fair: no kind of move is possible in all of its states and never taken
    within the set. For example, a session that can expire in every state expires at some point.

    Args:
        successors: state -> moves that happen without an operator, with the states they lead to.
        among: start from these states only; default: all.
    """
    found: list[list[int]] = []
    for members in _components(successors, range(len(successors)) if among is None else among):
        inside = set(members)
        moves = [(m, t) for state in members for m, t in successors[state] if t in inside]
        if not moves:
            continue
        done = {move.kind for move, _ in moves}
        always = set.intersection(*({m.kind for m, _ in successors[s]} for s in members))
        if always <= done:
            found.append(sorted(members))
    return sorted(found)


def shortest_cycle(successors: Sequence[Edges], members: Sequence[int]) -> list[int]:
    """Return a shortest path from the first of the states back to it, within the states."""
    inside, start = set(members), members[0]
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        for _, reached in successors[state]:
            if reached == start:
                way = [start]
                while state != start:
                    way.append(state)
                    state = came_from[state]
                return [*way, start][::-1]
            if reached in inside and reached not in came_from:
                came_from[reached] = state
                queue.append(reached)
    return [start]


def _components(successors: Sequence[Edges], roots: Iterable[int]) -> list[list[int]]:
    """Strongly connected components (Tarjan), without recursion."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in roots:
        if root in order:
            continue
        work = [(root, 0)]
        while work:
            state, at = work.pop()
            if at == 0:
                order[state] = low[state] = len(order)
                stack.append(state)
                on_stack.add(state)
            for number in range(at, len(successors[state])):
                reached = successors[state][number][1]
                if reached not in order:
                    work += [(state, number + 1), (reached, 0)]
                    break
                if reached in on_stack:
                    low[state] = min(low[state], order[reached])
            else:
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[state])
                if low[state] == order[state]:
                    at = stack.index(state)
                    found.append(stack[at:])
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
    return found


def liveness_violations(
    world: SearchWorld, evidence: Evidence, progress: Progress, plan: Plan, *, rests: bool
) -> list[Broken]:
    """Return the rules that a group breaks in which no move happens without an operator.

    Args:
        world: the simulated world.
        evidence: what the checkers have collected.
        progress: bounces that the operator has done.
        plan: bounces of the operator.
        rests: no thread waits for anything; False: the group hangs.
    """
    up = [thread for thread in world.threads if thread.is_up]
    if not rests:
        if not up:
            return []
        why = ", ".join(f"{t.name} is {t.phase.value}" for t in up if not t.is_resting)
        return [
            Broken(
                rule="settles",
                at_ms=0,
                sentence="the group hangs, and "
                + (why or "its members are not all in the current generation"),
            )
        ]
    used = tuple((thread.name, thread.streams.state.used_version) for thread in up)
    settled = Settled(0, world.group.generation, "", used)
    broken = check_step(evidence, settled)
    if progress.is_forced or progress.is_done(plan):
        missing = [thread.name for thread in world.threads if not thread.is_up]
        broken += check_all_members_are_up(missing, at_ms=0)
    if not world.setup.dimensions.is_default:
        broken += check_dimensions(rested(world))
    if progress.is_forced:
        broken += check_final_version([settled], plan.final_version)
    elif progress.is_done(plan):
        broken += check_resting_versions(
            [settled], plan.resting_versions, is_uniform=plan.is_uniform
        )
    return broken
