"""New copies handed on in chains, from a client above its band to one with room.

Where tags or racks bind, the client with room may hold none of the copies that are too many: then a
third client takes one of them and hands one of its own on, or a task changes several of its places
at once. Copies stay as far apart as they were, and only copies that are new in this call move, so
nothing more is restored.
"""

from collections import deque

from assignor.placement.standbys.scratchpad import Board

# Beyond so many clients or new copies nothing is handed on: a search looks at each pair of them.
_MOST_CLIENTS, _MOST_COPIES = 64, 600

# Ways to place the new copies of one task that are compared.
_MOST_WAYS = 64

# (task, from, to)
_Step = tuple[int, int, int]


def hand_on(board: Board) -> bool:
    """Bring clients into their bands by chains of new copies, the shortest first.

    Returns whether any copy moved.
    """
    copies = sum(map(len, board.fresh.values()))
    if not board.spread.is_needed or len(board.room) > _MOST_CLIENTS or copies > _MOST_COPIES:
        return False
    has_moved = False
    for client, room in enumerate(board.room):
        for _ in range(-room):
            if not _apply(board, _chain(board, client)) and not _replace_all(board, client):
                break
            has_moved = True
    return has_moved


def _replace_all(board: Board, client: int) -> bool:
    """Place all new copies of one task of the client anew, where that levels the clients."""
    for task in sorted(board.fresh.get(client, ())):
        new = [c for c in sorted(board.holders[task]) if task in board.fresh.get(c, ())]
        for other in new:
            board.drop(task, other)
        before = _unevenness(board, new)
        way = min(_ways(board, task, len(new)), key=lambda w: _unevenness(board, w), default=new)
        chosen = way if _unevenness(board, way) < before else new
        for old in new:
            del board.fresh[old][task]
        for other in chosen:
            board.add_new(task, other)
        if chosen is not new:
            return True
    return False


def _ways(board: Board, task: int, missing: int) -> list[list[int]]:
    """Clients for the missing copies of a task, each way as far apart as it can be."""
    ways: list[list[int]] = [[]]
    for left in range(missing, 0, -1):
        longer = []
        for way in ways:
            holders = [board.active[task], *sorted(board.holders[task]), *way]
            best: dict[int, int] = {}
            cells = board.spread.best_for(holders, left)
            for client, room in enumerate(board.room):
                cell = board.spread.cells[client]
                able = board.spread.usable[client] and cell in cells and client not in holders
                if able and (cell not in best or room > board.room[best[cell]]):
                    best[cell] = client
            longer += [[*way, client] for _, client in sorted(best.items())]
        ways = longer[:_MOST_WAYS]
    return ways


def _unevenness(board: Board, clients: list[int]) -> float:
    """How much worse the balance gets when each of the clients takes one copy more."""
    return sum((1 - 2 * board.room[client]) / max(1, board.capacity[client]) for client in clients)


def _chain(board: Board, start: int) -> list[_Step]:
    """The steps of a shortest chain to a client with room; none where there is no chain."""
    came: dict[int, _Step] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for client in range(len(board.room)):
            if client == start or client in came or not board.capacity[client]:
                continue
            task = _passable(board, here, client)
            if task is None:
                continue
            came[client] = (task, here, client)
            if board.room[client] > 0:
                return _steps(came, start, client)
            waiting.append(client)
    return []


def _passable(board: Board, old: int, new: int) -> int | None:
    """A new copy of one client that another may hold instead, or None."""
    for task in board.fresh.get(old, ()):
        if board.can_hold(task, new) and board.may_replace(task, old, new):
            return task
    return None


def _steps(came: dict[int, _Step], start: int, end: int) -> list[_Step]:
    """The steps that lead from one client to another, the last one first."""
    steps = []
    while end != start:
        steps.append(came[end])
        end = came[end][1]
    return steps


def _apply(board: Board, steps: list[_Step]) -> bool:
    """Take the steps, the last one first; all are taken back where one does not fit any more."""
    for number, (task, old, new) in enumerate(steps):
        # Two copies of a task in one chain: the first that moved may be in the second's way.
        if not board.can_hold(task, new) or not board.may_replace(task, old, new):
            for undone, before, after in reversed(steps[:number]):
                _move(board, undone, after, before)
            return False
        _move(board, task, old, new)
    return bool(steps)


def _move(board: Board, task: int, old: int, new: int) -> None:
    board.drop(task, old)
    board.add_new(task, new)
    del board.fresh[old][task]
