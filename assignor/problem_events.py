"""Problems with events: a group that settles, then clients join, leave or bounce, and so on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from assignor.problem import Problem, ProblemError, read_client
from assignor.simulate import ROUNDS_MAX, Round, clients_after, play, regroup
from assignor.state import LAG_UNKNOWN, ClientInput, GroupState, Strategy

Phases = Iterator[tuple[str, list[Round]]]


def play_problem(problem: Problem, strategy: Strategy, *, rounds_max: int = ROUNDS_MAX) -> Phases:
    """The rounds of the start, then of each event, as (name, rounds).

    Raises:
        ProblemError: an event is not in the format or names a client that is not there.
    """
    stuck = {
        client: LAG_UNKNOWN if lag == "unknown" else int(lag)
        for client, lag in (problem.data.get("stuck") or {}).items()
    }
    rounds = list(play(problem.state, strategy, stuck=stuck, rounds_max=rounds_max))
    yield "start", rounds
    for event in problem.data.get("events") or ():
        clients = _clients(rounds[-1], stuck)
        state = rounds[-1].state
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "join":
            joining = (read_client(i, c) for i, c in sorted(event.get("clients", {}).items()))
            clients |= {client.process_id: client for client in joining}
            state = regroup(state, list(clients.values()))
        elif kind == "leave":
            state = regroup(state, _without(clients, event.get("clients", [])))
        elif kind == "bounce":
            rounds = list(_bounce(rounds[-1], event, strategy, stuck))
            state = regroup(state, list(_clients(rounds[-1], stuck).values()))
            rounds += play(state, strategy, stuck=stuck, rounds_max=rounds_max)
            yield "bounce", rounds
            continue
        else:
            raise ProblemError(f"event {kind!r} is unknown; known: bounce, join, leave")
        rounds = list(play(state, strategy, stuck=stuck, rounds_max=rounds_max))
        yield kind, rounds


def _clients(last: Round, stuck: Mapping[str, int]) -> dict[str, ClientInput]:
    clients = clients_after(last.state, last.assignment, stuck=stuck)
    return {client.process_id: client for client in clients}


def _without(clients: Mapping[str, ClientInput], gone: list[str]) -> list[ClientInput]:
    for process_id in gone:
        if process_id not in clients:
            raise ProblemError(f"client {process_id} is to leave but is not there")
    left = [client for process_id, client in clients.items() if process_id not in gone]
    if not left:
        raise ProblemError("all clients are to leave at once; keep one")
    return left


def _bounce(
    last: Round, event: Mapping[str, Any], strategy: Strategy, stuck: Mapping[str, int]
) -> Iterator[Round]:
    """One client after another leaves for one round, and is back with all its state behind."""
    for process_id in event.get("clients", ()):
        clients = _clients(last, stuck)
        left = _without(clients, [process_id])
        [last] = play(regroup(last.state, left), strategy, rounds_max=1)
        yield last
        old = clients[process_id]
        back = replace(
            old,
            active_tasks=frozenset(),
            lags=dict.fromkeys(old.lags, int(event.get("lag", 100))),
            lags_before={},
        )
        state: GroupState = regroup(last.state, [*_clients(last, stuck).values(), back])
        [last] = play(state, strategy, rounds_max=1)
        yield last
