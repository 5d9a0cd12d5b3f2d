"""Chains of moves that bring new copies from a client above its band to one with free capacity.

Tags or racks may forbid the direct move. Then a third client takes one of the copies and passes one
of its own on, or several copies of a task move at once. Copies stay as far apart as they were. Only
copies that are new in this call move, so no additional state is restored.
"""

from collections import deque

from assignor.placement.standbys.draft import DraftStandbys

# With more clients or new copies no chains are searched: a search tries each pair of them.
_MOST_CLIENTS, _MOST_COPIES = 64, 600

# Most placements of the new copies of one task that are compared.
_MOST_WAYS = 64

# (task, from, to)
_Step = tuple[int, int, int]


def move_along_chains(draft: DraftStandbys) -> bool:
    """Move new copies along chains until clients are within their bands; whether any moved.

    Each chain is the shortest for its client.
    """
    copies = sum(map(len, draft.fresh.values()))
    if not draft.spread.is_needed or len(draft.free) > _MOST_CLIENTS or copies > _MOST_COPIES:
        return False
    has_moved = False
    for client, free in enumerate(draft.free):
        for _ in range(-free):
            if not _apply(draft, _chain(draft, client)) and not _replace_all(draft, client):
                break
            has_moved = True
    return has_moved


def _replace_all(draft: DraftStandbys, client: int) -> bool:
    """Place all new copies of one task of the client anew if that improves the balance.

    Returns whether it did.
    """
    for task in sorted(draft.fresh.get(client, ())):
        new = [c for c in sorted(draft.holders[task]) if task in draft.fresh.get(c, ())]
        for other in new:
            draft.drop(task, other)
        before = _unevenness(draft, new)
        way = min(_ways(draft, task, len(new)), key=lambda w: _unevenness(draft, w), default=new)
        chosen = way if _unevenness(draft, way) < before else new
        for other in chosen:
            draft.add_new(task, other)
        if chosen is not new:
            return True
    return False


def _ways(draft: DraftStandbys, task: int, missing: int) -> list[list[int]]:
    """Sets of clients for the missing copies of a task, each with the greatest spread."""
    ways: list[list[int]] = [[]]
    for left in range(missing, 0, -1):
        longer = []
        for way in ways:
            holders = [draft.active[task], *sorted(draft.holders[task]), *way]
            best: dict[int, int] = {}
            cells = draft.spread.best_for(holders, left)
            for client, free in enumerate(draft.free):
                cell = draft.spread.cells[client]
                able = draft.spread.usable[client] and cell in cells and client not in holders
                if able and (cell not in best or free > draft.free[best[cell]]):
                    best[cell] = client
            longer += [[*way, client] for _, client in sorted(best.items())]
        ways = longer[:_MOST_WAYS]
    return ways


def _unevenness(draft: DraftStandbys, clients: list[int]) -> float:
    """How much worse the balance gets if each of the clients takes one more copy."""
    return sum((1 - 2 * draft.free[client]) / max(1, draft.capacity[client]) for client in clients)


def _chain(draft: DraftStandbys, start: int) -> list[_Step]:
    """The steps of a shortest chain to a client with free capacity, last first; [] if none."""
    came: dict[int, _Step] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for client in range(len(draft.free)):
            if client == start or client in came or not draft.capacity[client]:
                continue
            task = _passable(draft, here, client)
            if task is None:
                continue
            came[client] = (task, here, client)
            if draft.free[client] > 0:
                return _steps(came, start, client)
            waiting.append(client)
    return []


def _passable(draft: DraftStandbys, old: int, new: int) -> int | None:
    """A task whose new copy on `old` may move to `new`, or None."""
    for task in draft.fresh.get(old, ()):
        if draft.can_hold(task, new) and draft.may_replace(task, old, new):
            return task
    return None


def _steps(came: dict[int, _Step], start: int, end: int) -> list[_Step]:
    """The steps that lead from one client to another, last first."""
    steps = []
    while end != start:
        steps.append(came[end])
        end = came[end][1]
    return steps


def _apply(draft: DraftStandbys, steps: list[_Step]) -> bool:
    """Apply the steps, last first; whether any were. If one no longer fits, undo them all."""
    for number, (task, old, new) in enumerate(steps):
        # If a chain moves two copies of one task, the first move may forbid the second.
        if not draft.can_hold(task, new) or not draft.may_replace(task, old, new):
            for undone, before, after in reversed(steps[:number]):
                _move(draft, undone, after, before)
            return False
        _move(draft, task, old, new)
    return bool(steps)


def _move(draft: DraftStandbys, task: int, old: int, new: int) -> None:
    draft.drop(task, old)
    draft.add_new(task, new)
