"""The bound of a partition's pause, in named terms, for live and simulated bounces.

A partition pauses from the time at which its owner stops processing it until a member, another or
the same, processes it again. What stopped it decides whether a session timeout may pass:

| stopped by | the coordinator learns of it |
| --- | --- |
| rebalance | at once: its owner is a member and gives it up |
| clean stop | at once: the member says that it leaves the group |
| silent stop | when the session runs out: JVM members and static members stop without leaving |
| crash | when the session runs out |
| standstill | when the session runs out: the member neither processes nor sends heartbeats |
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum


class Stopped(Enum):
    """What stopped a partition, and whether a session timeout may pass before a rebalance."""

    REBALANCE = ("rebalance", False)
    CLEAN_STOP = ("clean stop", False)
    SILENT_STOP = ("silent stop", True)
    CRASH = ("crash", True)
    STANDSTILL = ("standstill", True)

    def __init__(self, words: str, waits_for_session: bool) -> None:  # noqa: FBT001 an enum's row
        self.words = words
        self.waits_for_session = waits_for_session


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseBound:
    """The longest acceptable pause, as a sum of terms in ms.

    Attributes:
        rebalance_ms: of the rebalances that ended the pause, at their limit.
        session_ms: until the sessions of members that ended, or stood still, without leaving.
        restore_ms: to read the state of the task.
        fault_ms: delays by injected faults: messages lost or late, members made slow.
        down_ms: no member was up, or the group was empty.
    """

    rebalance_ms: float
    session_ms: float = 0
    restore_ms: float = 0
    fault_ms: float = 0
    down_ms: float = 0

    @property
    def total_ms(self) -> float:
        """The sum of all terms."""
        return self.rebalance_ms + self.session_ms + self.restore_ms + self.fault_ms + self.down_ms

    def __str__(self) -> str:
        """Return the sum, with each term that is not zero.

        >>> str(PauseBound(rebalance_ms=3360, session_ms=45000))
        '48360 ms (rebalance 3360, session 45000)'
        """
        terms = (
            ("rebalance", self.rebalance_ms),
            ("session", self.session_ms),
            ("restore", self.restore_ms),
            ("faults", self.fault_ms),
            ("nobody up", self.down_ms),
        )
        named = ", ".join(f"{name} {ms:.0f}" for name, ms in terms if ms)
        return f"{self.total_ms:.0f} ms ({named})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPause:
    """One pause of one partition, and its bound.

    Attributes:
        partition: its name.
        from_ms: when it stopped.
        pause_ms: how long it paused.
        stopped: what stopped it.
        member: the former owner.
        bound: None if downtime is intended.
        session_ms: of the pause, waiting for the sessions of members that ended without leaving.
        restore_ms: of the pause, reading the state.
    """

    partition: str
    from_ms: float
    pause_ms: float
    stopped: Stopped
    member: str
    bound: PauseBound | None
    session_ms: float = 0
    restore_ms: float = 0

    @property
    def is_within(self) -> bool:
        """Whether the pause is no longer than its bound."""
        return self.bound is None or self.pause_ms <= self.bound.total_ms

    def __str__(self) -> str:
        """Return the pause, what stopped the partition, and the bound."""
        text = f"{self.partition} paused for {self.pause_ms:.0f} ms"
        text += f" ({self.stopped.words} of {self.member})"
        return text if self.bound is None else f"{text}; its bound is {self.bound}"


def pause_numbers(pause: PartitionPause | None) -> dict[str, object]:
    """Return a pause as plain values; empty for None."""
    if pause is None:
        return {}
    bound = pause.bound
    return {
        "partition": pause.partition,
        "from_ms": round(pause.from_ms, 1),
        "pause_ms": round(pause.pause_ms, 1),
        "stopped_by": pause.stopped.words,
        "member": pause.member,
        "bound_ms": None if bound is None else round(bound.total_ms, 1),
        "terms_ms": None if bound is None else {n: round(ms, 1) for n, ms in asdict(bound).items()},
    }


def longest_pause(pauses: Sequence[PartitionPause]) -> PartitionPause | None:
    """Return the longest pause beyond its bound, else the longest of all; None without any."""
    beyond = [pause for pause in pauses if not pause.is_within]
    return max(beyond or pauses, key=lambda pause: pause.pause_ms, default=None)
