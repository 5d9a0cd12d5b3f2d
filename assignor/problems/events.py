"""Problems with events: a group that settles, then clients join, leave or bounce, and so on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from assignor.placement import LAG_UNKNOWN, ClientInput, GroupState, Strategy
from assignor.problems.files import Problem, ProblemError, read_client
from assignor.problems.rounds import ROUNDS_MAX, Round, clients_after, play, regroup

Phases = Iterator[tuple[str, list[Round]]]

_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "bounce": (list, "a list of clients"),
    "join": (dict, "an object of clients"),
    "leave": (list, "a list of clients"),
}
"""Types of events, and what `clients` of each is."""


def play_problem(problem: Problem, strategy: Strategy, *, rounds_max: int = ROUNDS_MAX) -> Phases:
    """The rounds of the start, then of each event, as (name, rounds).

    Raises:
        ProblemError: an event is not in the format or names a client that is not there.
    """
    stuck = _stuck(problem.data.get("stuck") or {})
    rounds = list(play(problem.state, strategy, stuck=stuck, rounds_max=rounds_max))
    yield "start", rounds
    for event in _events(problem.data.get("events") or []):
        clients = _clients(rounds[-1], stuck)
        state = rounds[-1].state
        kind = str(event["type"])
        if kind == "join":
            joining = (read_client(i, c) for i, c in sorted(event["clients"].items()))
            clients |= {client.process_id: client for client in joining}
            state = regroup(state, list(clients.values()))
        elif kind == "leave":
            state = regroup(state, _without(clients, event["clients"]))
        else:
            rounds = list(_bounce(rounds[-1], event, strategy, stuck))
            state = regroup(state, list(_clients(rounds[-1], stuck).values()))
            rounds += play(state, strategy, stuck=stuck, rounds_max=rounds_max)
            yield kind, rounds
            continue
        rounds = list(play(state, strategy, stuck=stuck, rounds_max=rounds_max))
        yield kind, rounds


def _stuck(given: object) -> dict[str, int]:
    if not isinstance(given, dict):
        raise ProblemError(f"stuck is {type(given).__name__}; give an object, client -> lag")
    return {
        client: LAG_UNKNOWN if lag == "unknown" else _lag(lag, f"stuck client {client}")
        for client, lag in given.items()
    }


def _lag(given: object, where: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < LAG_UNKNOWN:
        raise ProblemError(f"{where} has lag {given!r}; give a whole number, 0 or more")
    return given


def _events(given: object) -> Iterator[Mapping[str, Any]]:
    """The events, each with the clients that its type asks for."""
    if not isinstance(given, list):
        raise ProblemError(f"events is {type(given).__name__}; give a list")
    for number, event in enumerate(given, start=1):
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            known = ", ".join(_KINDS)
            raise ProblemError(f"event {kind!r} is unknown, number {number}; known: {known}")
        clients = event.get("clients")
        wanted, said = _KINDS[kind]
        if not clients or not isinstance(clients, wanted):
            raise ProblemError(f"event {number}, {kind}, has clients {clients!r}; give {said}")
        yield event


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
    for process_id in event["clients"]:
        clients = _clients(last, stuck)
        left = _without(clients, [process_id])
        [last] = play(regroup(last.state, left), strategy, rounds_max=1)
        yield last
        old = clients[process_id]
        back = replace(
            old,
            active_tasks=frozenset(),
            lags=dict.fromkeys(old.lags, _lag(event.get("lag", 100), "an event")),
            lags_before={},
        )
        state: GroupState = regroup(last.state, [*_clients(last, stuck).values(), back])
        [last] = play(state, strategy, rounds_max=1)
        yield last
