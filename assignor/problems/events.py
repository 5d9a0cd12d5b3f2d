"""Simulate the events of a problem: clients join, leave or bounce, then the group settles."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from assignor.placement import ClientInput, GroupState, Strategy
from assignor.problems.files import Problem
from assignor.problems.rounds import ROUNDS_MAX, Round, clients_after, play, regroup
from assignor.problems.schedule import Event
from assignor.problems.values import ProblemError
from encoding import shown

Phases = Iterator[tuple[str, list[Round]]]


def play_problem(problem: Problem, strategy: Strategy, *, rounds_max: int = ROUNDS_MAX) -> Phases:
    """The rounds at the start and after each event, as (name, rounds).

    Raises:
        ProblemError: an event leaves no client, or names a client that is not in the group.
        TaskAssignmentError: the strategy failed or broke a rule, as for `run_strategy`.
    """
    stuck = problem.schedule.stuck
    rounds = list(play(problem.state, strategy, stuck=stuck, rounds_max=rounds_max))
    yield "start", rounds
    for event in problem.schedule.events:
        clients = _clients(rounds[-1], stuck)
        state = rounds[-1].state
        if event.kind == "bounce":
            rounds = list(_bounce(rounds[-1], event, strategy, stuck))
            state = regroup(state, list(_clients(rounds[-1], stuck).values()))
            rounds += play(state, strategy, stuck=stuck, rounds_max=rounds_max)
        else:
            if event.kind == "join":
                clients |= {client.process_id: client for client in event.joining}
                state = regroup(state, list(clients.values()))
            else:
                state = regroup(state, _without(clients, event.clients))
            rounds = list(play(state, strategy, stuck=stuck, rounds_max=rounds_max))
        yield event.kind, rounds


def _clients(last: Round, stuck: Mapping[str, int]) -> dict[str, ClientInput]:
    clients = clients_after(last.state, last.assignment, stuck=stuck)
    return {client.process_id: client for client in clients}


def _without(clients: Mapping[str, ClientInput], gone: Collection[str]) -> list[ClientInput]:
    for process_id in gone:
        if process_id not in clients:
            raise ProblemError(f"client {shown(process_id)} cannot leave: it is not in the group")
    left = [client for process_id, client in clients.items() if process_id not in gone]
    if not left:
        raise ProblemError("all clients leave at once; keep one")
    return left


def _bounce(
    last: Round, event: Event, strategy: Strategy, stuck: Mapping[str, int]
) -> Iterator[Round]:
    """One client after another leaves for one round and rejoins; all its copies lag then."""
    for process_id in event.clients:
        clients = _clients(last, stuck)
        left = _without(clients, [process_id])
        [last] = play(regroup(last.state, left), strategy, rounds_max=1)
        yield last
        old = clients[process_id]
        back = replace(
            old,
            active_tasks=frozenset(),
            lags=dict.fromkeys(old.lags, event.lag),
            left_over=frozenset(old.lags),
            lags_before={},
        )
        state: GroupState = regroup(last.state, [*_clients(last, stuck).values(), back])
        [last] = play(state, strategy, rounds_max=1)
        yield last
