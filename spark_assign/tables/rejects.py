"""A reject: why a group is not placed. One value from the check that finds it to its message."""

from dataclasses import asdict, dataclass
from typing import Any

from encoding import shown
from encoding.primitives import has_half_pair
from spark_assign.tables.schemas import schema_of

_REASON_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where Spark read a row.

    Attributes:
        file: path of the file.
        block: start of the block that a line was read with; None for rows of a table.
        number: index of a row in its file, from 0; of a line a number that grows in its block.
    """

    file: str
    block: int | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Why a group cannot be placed.

    Attributes:
        name: of the group, or "".
        column: where the value stands, as `tasks.owner`; "" where no value is to blame.
        value: as text; "null" for a missing one.
        reason: a sentence that says what is expected.
        place: "FILE, row 3" or "FILE, line 3"; None where that is not known (`places`).
        position: where the group was read, until `place` is known.
    """

    name: str
    column: str = ""
    value: str = ""
    reason: str
    place: str | None = None
    position: Position | None = None

    def row(self) -> dict[str, Any]:
        """The reject as a row in the schema `REJECT`; each text is one printable line."""
        return asdict(self) | {
            "name": printable_name(self.name),
            "value": shown(self.value),
            "reason": shown(self.reason, limit=_REASON_MAX),
        }

    def __str__(self) -> str:
        """One sentence with group, place, column, value and reason."""
        where = f"column {self.column} is {shown(self.value)}: " if self.column else ""
        place = f" ({shown(self.place)})" if self.place else ""
        return f"group {shown(self.name) or 'without a name'}{place}: {where}{self.reason}"


def printable_name(name: str) -> str:
    """A name as it is, or escaped where it is no Unicode text (halves of surrogate pairs)."""
    return shown(name, limit=None) if has_half_pair(name) else name


POSITION_TYPE = schema_of(Position)
REJECT = schema_of(Reject)
