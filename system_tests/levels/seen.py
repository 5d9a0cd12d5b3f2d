"""What happens in a simulated group with levels: the values that the checkers judge."""

from dataclasses import dataclass
from enum import StrEnum

from probing.features import UNKNOWN_LEVELS, FinalizedLevels


class What(StrEnum):
    """What can happen."""

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
    LOOKED = "looked"
    DEPRECATED = "deprecated"
    GOES_BACK = "goes back"
    WENT_BACK = "went back"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One thing that happened.

    Attributes:
        step: of the run, from 1.
        what: which kind of thing.
        who: the member, `b0` to `b2` for a broker, or "" for the operator.
        levels: what the member, broker or operator goes by afterwards.
        version: that was written.
        tasks: active tasks that the member follows to.
        followers: members of the rebalance, for `LED`.
        minimum: of the protocol, once it was raised.
        why: a sentence of whoever decided.
    """

    step: int
    what: What
    who: str = ""
    levels: FinalizedLevels = UNKNOWN_LEVELS
    version: int = 0
    tasks: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    minimum: int = 0
    why: str = ""
