"""The simulation part of a problem: events, and stuck clients, whose copies never catch up."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from assignor.placement import LAG_UNKNOWN, ClientInput
from assignor.problems.values import (
    CLIENT_KEYS,
    Json,
    ProblemError,
    check_keys,
    checked_object,
    quoted,
    read_client,
    records_behind,
)
from encoding import shown

_BOUNCE_LAG: Final = 100
_KINDS: Final[Mapping[str, str]] = {
    "bounce": "a list of clients",
    "join": "an object of clients",
    "leave": "a list of clients",
}
"""Types of events, and the format of `clients` in each."""
_EVENT_KEYS: Final = frozenset({"type", "clients", "lag", "note"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event in a group.

    Attributes:
        kind: bounce, join or leave.
        clients: process ids of the clients that bounce or leave, in order.
        joining: the clients that join, sorted by process id.
        lag: records that copies of a bounced client lag when it rejoins.
    """

    kind: str
    clients: tuple[str, ...] = ()
    joining: tuple[ClientInput, ...] = ()
    lag: int = _BOUNCE_LAG


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The events in a group, and its stuck clients.

    Attributes:
        events: in order; the group settles before each.
        stuck: client -> the lag that its copies always report, or LAG_UNKNOWN.
    """

    events: tuple[Event, ...] = ()
    stuck: Mapping[str, int] = field(default_factory=dict)


def read_schedule(data: Json, clients: Iterable[str]) -> Schedule:
    """Read the events and stuck clients of a problem with these clients.

    Raises:
        ProblemError: they are invalid, name a client that does not exist, or leave no client.
    """
    present = set(clients)
    known = set(present)
    events = tuple(_events(data.get("events"), present))
    known |= {client.process_id for event in events for client in event.joining}
    return Schedule(events=events, stuck=_stuck(data.get("stuck"), known))


def _stuck(given: object, known: set[str]) -> dict[str, int]:
    if given is None:
        return {}
    lags = checked_object(given, "stuck")
    for client in lags:
        if client not in known:
            raise ProblemError(
                f"stuck client {shown(client)} does not exist: it is not in clients or a join event"
            )
    return {
        client: LAG_UNKNOWN
        if lag == "unknown"
        else records_behind(lag, f"stuck client {shown(client)}")
        for client, lag in lags.items()
    }


def _events(given: object, present: set[str]) -> Iterator[Event]:
    """The events, each checked against the clients of the group at that time."""
    if given is None:
        return
    if not isinstance(given, list):
        raise ProblemError(f"events is {type(given).__name__}; give a list")
    for number, event in enumerate(given, start=1):
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            known = ", ".join(_KINDS)
            raise ProblemError(
                f"event {quoted(kind)} is unknown, number {number}; choose from {known}"
            )
        clients, where = event.get("clients"), f"event {number}, {kind}"
        check_keys(event, _EVENT_KEYS, where, "events")
        if kind == "join" and isinstance(clients, dict) and clients:
            joining = _joining(clients, present, where)
            present |= {client.process_id for client in joining}
            yield Event(kind=kind, joining=joining)
        elif kind != "join" and isinstance(clients, list) and clients:
            _check_leaving(clients, present, where, is_back=kind == "bounce")
            lag = records_behind(event.get("lag", _BOUNCE_LAG), f"{where}: an event")
            if kind == "leave":
                present -= set(clients)
            yield Event(kind=kind, clients=tuple(clients), lag=lag)
        else:
            raise ProblemError(f"{where}, has clients {quoted(clients)}; give {_KINDS[kind]}")


def _joining(clients: Json, present: set[str], where: str) -> tuple[ClientInput, ...]:
    """The clients that join, sorted.

    Raises:
        ProblemError: a client is in the group already, or is invalid.
    """
    joining = []
    for name, given in sorted(clients.items()):
        client = f"{where}: client {shown(name)}"
        if name in present:
            raise ProblemError(f"{client} is in the group already; give a new process id")
        joining.append(read_client(name, given))
        check_keys(given, CLIENT_KEYS, client, "clients")
    return tuple(joining)


def _check_leaving(clients: list[object], present: set[str], where: str, *, is_back: bool) -> None:
    """Check that clients can leave.

    Raises:
        ProblemError: a client is not in the group, or no client would be left.
    """
    for client in clients:
        if not isinstance(client, str):
            raise ProblemError(f"{where}: clients has entry {quoted(client)}; give process ids")
        if client not in present:
            raise ProblemError(
                f"{where}: client {shown(client)} cannot leave: it is not in the group"
            )
    gone = 1 if is_back else len(set(clients))
    if gone >= len(present):
        raise ProblemError(f"{where}: all clients leave at once; keep one")
