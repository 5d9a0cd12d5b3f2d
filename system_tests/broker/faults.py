"""Faults on demand, and the record of what was asked."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple


class RecordedRequest(NamedTuple):
    """One request as it came in; times are ms of the broker's monotonic clock."""

    at_ms: int
    node_id: int
    api: str
    version: int
    client_id: str
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What shall happen to the next requests that match; unset conditions match everything.

    `delay_ms` comes first, then either `drop` (the connection is closed without an answer) or
    `error` (answered with that code, and the request has no effect). `lose_answer` lets the
    request take effect and drops only its answer, as a connection lost on the way back does.

    Args:
        api: API name as in the protocol, for example "JoinGroup"; empty for every API.
        times: How many matching requests it lasts.
    """

    api: str = ""
    times: int = 1
    error: int | None = None
    delay_ms: int = 0
    drop: bool = False
    lose_answer: bool = False
    group_id: str | None = None
    member_id: str | None = None
    client_id: str | None = None
    node_id: int | None = None

    def matches(self, request: RecordedRequest) -> bool:
        """Whether the fault is meant for this request."""
        wanted = (
            (self.api or None, request.api),
            (self.group_id, request.group_id),
            (self.member_id, request.member_id),
            (self.client_id, request.client_id),
            (self.node_id, request.node_id),
        )
        return all(asked is None or asked == got for asked, got in wanted)


class Faults:
    """The table of faults in force; the first that matches is used."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int]] = []

    def add(self, fault: Fault) -> None:
        """Put a fault in force, after those that are."""
        if fault.times > 0:
            self._left.append((fault, fault.times))

    def clear(self) -> None:
        """Lift every fault."""
        self._left.clear()

    def pending(self) -> int:
        """How many requests are still going to fail."""
        return sum(left for _, left in self._left)

    def take(self, request: RecordedRequest) -> Fault | None:
        """The fault for this request, if any; it counts as used."""
        for at, (fault, left) in enumerate(self._left):
            if fault.matches(request):
                self._left[at : at + 1] = [(fault, left - 1)] if left > 1 else []
                return fault
        return None


class RequestRecord:
    """The last requests, oldest first."""

    def __init__(self, kept: int) -> None:
        self._requests: deque[RecordedRequest] = deque(maxlen=kept)

    def add(self, request: RecordedRequest) -> None:
        """Note a request."""
        self._requests.append(request)

    def all(self, api: str = "") -> tuple[RecordedRequest, ...]:
        """Every kept request, or those of one API."""
        return tuple(r for r in self._requests if api in ("", r.api))
