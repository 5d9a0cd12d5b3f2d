"""Events of a simulated group with levels."""

from dataclasses import dataclass
from enum import StrEnum

from probing.features import UNKNOWN_LEVELS, FinalizedLevels


class EventKind(StrEnum):
    """Kind of an event."""

    STARTED = "started"
    STOPPED = "stopped"
    REFUSED = "refused"
    WROTE = "wrote"
    LED = "led"
    FOLLOWED = "followed"
    REJOINED = "rejoined"
    UPDATED = "updated"
    LEARNED = "learned"
    STALE = "stale"
    POLLED = "polled"
    ASKED = "asked"
    DEPRECATED = "deprecated"
    ROLLBACK_STARTED = "rollback"
    ROLLBACK_DONE = "back"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        step: number of the step in the run, from 1; 0 for the first rebalance.
        what: kind of the event.
        subject: name of the member; `b0` to `b2` for a broker, "" for the operator.
        levels: levels that the subject uses after the event.
        version: written version, for `WROTE`.
        tasks: assigned active tasks, for `FOLLOWED`.
        followers: members of the group, for `LED`, rollbacks and `ENDED`.
        minimum: new minimum of the protocol, for `DEPRECATED`.
        why: reason; for `STARTED` the name of the release. `ASKED` follows the `POLLED` of a member
            that asks for a rebalance because of what it found.
    """

    step: int
    what: EventKind
    subject: str = ""
    levels: FinalizedLevels = UNKNOWN_LEVELS
    version: int = 0
    tasks: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    minimum: int = 0
    why: str = ""
