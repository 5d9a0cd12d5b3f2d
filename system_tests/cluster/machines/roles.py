"""Reaction of a node to a level record: apply it, or stop, depending on its role.

KIP-778: a node that does not support the level terminates; an active controller resigns first, a
broker unregisters first.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from probing.features import LevelRange, Role
from probing.rules import Rule, Rules, always


class Reaction(StrEnum):
    """Reaction that a row demands."""

    APPLY = "use the level"
    RESIGN = "resign and terminate"
    TERMINATE = "terminate"
    UNREGISTER = "unregister and terminate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNumbers:
    """Input of a row.

    Attributes:
        role: role of the node.
        is_active: the node is the active controller.
        feature, level: content of the record.
        range: levels of the feature that the node supports; None: none.
    """

    role: Role
    is_active: bool
    feature: str
    level: int
    range: LevelRange | None

    @property
    def is_supported(self) -> bool:
        """Whether the node supports the level; level 0 (off) needs no support."""
        return self.level == 0 or (self.range is not None and self.level in self.range)

    @property
    def supported(self) -> str:
        """Return the node's range as text."""
        return "none" if self.range is None else str(self.range)


_WHAT_TO_DO: Final = "start it with a release that supports the level"

ROLE_RULES: Final[Rules[ReadNumbers, Reaction]] = (
    Rule(
        name="level is supported",
        holds=lambda n: n.is_supported,
        says=Reaction.APPLY,
        why="{feature} is finalized at {level}, supported is {supported}",
    ),
    Rule(
        name="active controller cannot",
        holds=lambda n: n.role is Role.CONTROLLER and n.is_active,
        says=Reaction.RESIGN,
        why="the log sets {feature} to {level}, and this active controller supports {supported}; it"
        f" resigns and stops; {_WHAT_TO_DO}",
    ),
    Rule(
        name="inactive controller cannot",
        holds=lambda n: n.role is Role.CONTROLLER,
        says=Reaction.TERMINATE,
        why="the log sets {feature} to {level}, and this controller supports {supported}; it stops;"
        f" {_WHAT_TO_DO}",
    ),
    Rule(
        name="broker cannot",
        holds=always,
        says=Reaction.UNREGISTER,
        why="the log sets {feature} to {level}, and this broker supports {supported}; it"
        f" unregisters and stops; {_WHAT_TO_DO}",
    ),
)
"""What the node does (KIP-778, compatibility)."""
