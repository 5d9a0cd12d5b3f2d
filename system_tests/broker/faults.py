"""Injected faults, and the record of received requests."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple


class RecordedRequest(NamedTuple):
    """A received request; times are ms of the broker's monotonic clock."""

    at_ms: int
    node_id: int
    api: str
    version: int
    client_id: str
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault for the next matching requests; unset conditions match every request.

    First the request is delayed by `delay_ms`. Then `drop` closes the connection without a
    response, or `error` answers with this code, without effect. `lose_answer` handles the request
    and closes the connection instead of sending the response.

    Args:
        api: API name as in the protocol, for example "JoinGroup"; empty for every API.
        times: Number of matching requests that the fault applies to.
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
        """Whether the fault applies to this request."""
        wanted = (
            (self.api or None, request.api),
            (self.group_id, request.group_id),
            (self.member_id, request.member_id),
            (self.client_id, request.client_id),
            (self.node_id, request.node_id),
        )
        return all(asked is None or asked == got for asked, got in wanted)


class Faults:
    """The active faults; the first match applies."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int]] = []
        self._cleared = asyncio.Event()

    def add(self, fault: Fault) -> None:
        """Add a fault after the active ones."""
        if fault.times > 0:
            self._left.append((fault, fault.times))

    def clear(self) -> None:
        """Remove all faults, and end the delays of requests that wait."""
        self._left.clear()
        self._cleared.set()
        self._cleared = asyncio.Event()

    async def delay(self, fault: Fault) -> None:
        """Wait as long as the fault says, or until the faults are removed."""
        if fault.delay_ms:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._cleared.wait(), fault.delay_ms / 1_000)

    def pending(self) -> int:
        """Return the number of requests that will still fail."""
        return sum(left for _, left in self._left)

    def take(self, request: RecordedRequest) -> Fault | None:
        """Return the fault for this request, or None; it counts as used."""
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
        """Record a request."""
        self._requests.append(request)

    def all(self, api: str = "") -> tuple[RecordedRequest, ...]:
        """Every kept request, or those of one API."""
        return tuple(r for r in self._requests if api in ("", r.api))
