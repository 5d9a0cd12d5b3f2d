"""Scenarios: failures and changes, applied to group states.

A scenario is a kind with an argument. For a group it has a *case* for each subject: every client,
every rack, or every value of a tag. States are changed column by column, so that stalled copies
stay marked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from assignor import ConfigError, GroupState, named_strategy
from assignor.config import config_from_mapping, setting_texts, setting_value
from assignor.placement import NOBODY, Strategy
from assignor.problems import Event, Problem, ProblemError, Round, Schedule, play, play_problem
from encoding import RebalanceError
from probing import UpgradePath, find_release, upgrade_path

KINDS = {
    "now": "no change: the group as it is",
    "lose-client": "each client fails and loses its state, one case each",
    "lose-rack": "all clients of a rack fail, one case per rack",
    "lose-zone": "all clients with one `zone` tag value fail; or lose-tag:KEY",
    "add": "add:N, N clients without state, median threads, on all racks",
    "release": "release:OLD:NEW, a rolling upgrade: clients leave and rejoin",
    "config": "config:KEY=VALUE;KEY=VALUE, other settings",
    "strategy": "strategy:NAME, another strategy",
}
_NEEDS = {"add", "release", "config", "strategy", "lose-tag"}
_ADDED_MAX = 100_000
_DIGITS_MAX = 9
_BOUNCE_LAG = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A kind of `KINDS` (or lose-tag) and its argument."""

    kind: str
    argument: str = ""

    def __str__(self) -> str:
        """The text that `parse_scenarios` reads."""
        return f"{self.kind}:{self.argument}" if self.argument else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario applied to one subject of one group.

    Attributes:
        scenario: what happens.
        subject: a client, a rack or a tag value; "" for the whole group.
        rounds: the rebalances that follow; empty if the case is impossible.
        error: why it is impossible.
    """

    scenario: Scenario
    subject: str
    rounds: tuple[Round, ...] = ()
    error: str = ""


def parse_scenarios(given: tuple[str, ...]) -> tuple[Scenario, ...]:
    """Scenarios of comma separated lists; `now` is always the first, as the baseline.

    Raises:
        ConfigError: an unknown scenario, or an argument that is missing or invalid.
        ReleaseError: an unknown release.
    """
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    scenarios = dict.fromkeys([Scenario(kind="now"), *map(_scenario, words)])
    return tuple(scenarios)


def _scenario(word: str) -> Scenario:
    kind, _, argument = word.partition(":")
    if kind == "lose-zone" and not argument:
        return Scenario(kind="lose-tag", argument="zone")
    if kind not in KINDS and kind != "lose-tag":
        raise ConfigError(f"unknown scenario {word}; choose from {', '.join(KINDS)}")
    if (kind in _NEEDS) != bool(argument):
        if argument:
            raise ConfigError(f"scenario {word}: {kind} takes no argument; leave it out")
        raise ConfigError(f"scenario {word} needs an argument; write {kind}:ARGUMENT, see --help")
    is_number = argument.isascii() and argument.isdigit() and len(argument) <= _DIGITS_MAX
    if kind == "add" and not (is_number and 0 < int(argument) <= _ADDED_MAX):
        raise ConfigError(f"scenario {word}: give a number of clients, 1 to {_ADDED_MAX}")
    if kind == "release":
        _path(argument)
    if kind == "config":
        config_from_mapping(_settings(argument))
    if kind == "strategy":
        named_strategy(argument)
    return Scenario(kind=kind, argument=argument)


def subjects(scenario: Scenario, state: GroupState) -> list[str]:
    """The subjects of a scenario in a group, sorted."""
    match scenario.kind:
        case "lose-client":
            return list(state.clients)
        case "lose-rack":
            return sorted({rack for rack in state.racks if rack is not None})
        case "lose-tag":
            return sorted({dict(tags).get(scenario.argument, "") for tags in state.tags} - {""})
        case _:
            return [""]


def case_of(scenario: Scenario, subject: str, state: GroupState, strategy: Strategy) -> Case:
    """Apply a scenario to a subject, and rebalance the group until it has settled."""
    try:
        rounds = tuple(_rounds(scenario, subject, state, strategy))
    except RebalanceError as error:
        return Case(scenario=scenario, subject=subject, error=str(error))
    return Case(scenario=scenario, subject=subject, rounds=rounds)


def _rounds(
    scenario: Scenario, subject: str, state: GroupState, strategy: Strategy
) -> Iterator[Round]:
    argument = scenario.argument
    match scenario.kind:
        case "lose-client":
            yield from play(without(state, {state.clients.index(subject)}), strategy)
        case "lose-rack":
            lost = {c for c, rack in enumerate(state.racks) if rack == subject}
            yield from play(without(state, lost), strategy)
        case "lose-tag":
            lost = {c for c, tags in enumerate(state.tags) if dict(tags).get(argument) == subject}
            yield from play(without(state, lost), strategy)
        case "add":
            yield from play(with_clients(state, int(argument)), strategy)
        case "config":
            own = {
                key: setting_value(key, text) for key, text in setting_texts(state.config).items()
            }
            config = config_from_mapping(own | _settings(argument))
            yield from play(replace(state, config=config), strategy)
        case "strategy":
            yield from play(state, named_strategy(argument))
        case "release":
            yield from _bounced(argument, state, strategy)
        case _:
            yield from play(state, strategy)


def _bounced(argument: str, state: GroupState, strategy: Strategy) -> Iterator[Round]:
    """For each bounce of the path, all clients leave for one round and rejoin with a lag."""
    path = _path(argument)
    if not path.possible:
        raise ProblemError(f"no rolling bounce: {path.reasons[0]}")
    bounce = Event(kind="bounce", clients=state.clients, lag=_BOUNCE_LAG)
    schedule = Schedule(events=(bounce,) * len(path.bounces))
    problem = Problem(name="", state=state, data={}, schedule=schedule)
    for name, rounds in play_problem(problem, strategy):
        if name == "bounce":
            yield from rounds


def without(state: GroupState, lost: set[int]) -> GroupState:
    """The group without some clients: their tasks have no owner, their state is lost.

    Raises:
        ProblemError: no client is left.
    """
    kept = [c for c in range(len(state.clients)) if c not in lost]
    if not kept:
        raise ProblemError("no client would be left; the group needs clients elsewhere")
    place = np.full(len(state.clients) + 1, NOBODY, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    return _with(state, place, [_client(state, c) for c in kept])


def with_clients(state: GroupState, count: int) -> GroupState:
    """The group with more clients without state: median threads, racks and tags in turn."""
    threads = int(np.median(state.threads))
    kinds = sorted({(state.racks[c] or "", state.tags[c]) for c in range(len(state.clients))})
    added = [
        (
            f"added-{number:05}",
            threads,
            kinds[number % len(kinds)][0] or None,
            kinds[number % len(kinds)][1],
        )
        for number in range(count)
    ]
    clients = sorted([_client(state, c) for c in range(len(state.clients))] + added)
    index = {client[0]: number for number, client in enumerate(clients)}
    place = np.array([*(index[name] for name in state.clients), NOBODY], dtype=np.int64)
    return _with(state, place, clients)


_Client = tuple[str, int, str | None, tuple[tuple[str, str], ...]]


def _client(state: GroupState, number: int) -> _Client:
    return (
        state.clients[number],
        int(state.threads[number]),
        state.racks[number],
        state.tags[number],
    )


def _with(state: GroupState, place: np.ndarray, clients: list[_Client]) -> GroupState:
    """The same tasks with other clients; `place` has the new number of each old one, and NOBODY."""
    rows = state.copy_rows()
    rows[:, 1] = place[rows[:, 1]]
    left_over = ((task, int(place[client])) for task, client in state.left_over)
    return state.with_copies(
        rows[rows[:, 1] != NOBODY],
        clients=tuple(client[0] for client in clients),
        threads=np.array([client[1] for client in clients], dtype=np.int64),
        racks=tuple(client[2] for client in clients),
        tags=tuple(client[3] for client in clients),
        owner=place[state.owner],
        left_over=tuple(sorted(pair for pair in left_over if pair[1] != NOBODY)),
    )


def _path(argument: str) -> UpgradePath:
    old, _, new = argument.partition(":")
    return upgrade_path(find_release(old), find_release(new))


def _settings(argument: str) -> dict[str, object]:
    pairs = [text.partition("=") for text in argument.split(";")]
    return {key: setting_value(key, value) for key, _, value in pairs}
