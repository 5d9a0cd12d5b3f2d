"""The table of ``assignor inspect --all``: one row per group."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from assignor.cli.inspect.columns import NARROW, name_width, number, plain_table
from assignor.cli.inspect.streams_groups import streams_row
from assignor.cli.toolkit.text import TextTable, line
from assignor.inspection import (
    STREAMS_PROTOCOL,
    DescribedGroup,
    GroupInspection,
    few,
    is_broker_side,
)

_ABOUT_VERSIONS: Final = frozenset({"holds-version", "before-probing"})
_WIDE: Final = 120
"""Width of a terminal from which on the table has the releases."""
_COLUMNS: Final = (
    *("group", "state", "assignor", "members", "lag", "version", "release", "findings"),
)
_NUMBERS: Final = frozenset({"members", "lag"})
_RELEASE: Final = _COLUMNS.index("release")
_REFUSALS: Final = frozenset({"failed", "not-told"})
NOTES: Final = frozenset({"not-shown", "not-read"})
"""Kinds of findings that need no action."""


def render_groups(looks: Sequence[GroupInspection], *, width: int | None = None) -> TextTable:
    """Return a table with one row per group.

    Args:
        looks: the groups; for a group that cannot be shown, the row holds the error.
        width: width of the terminal, to which group names may be cut; None: names are not cut.
    """
    is_narrow = width is not None and width < NARROW
    left_out = _RELEASE if width is not None and width < _WIDE else None
    names = [name for place, name in enumerate(_COLUMNS) if place != left_out]
    table = plain_table(names[0], *(["about it"] if is_narrow else ()))
    for name in () if is_narrow else names[1:]:
        is_number = name in _NUMBERS
        is_one_line = is_number or name == "version"
        table.add_column(
            name,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_one_line,
        )
    if width is not None:
        table.columns[0].max_width = name_width(width)
    for look in looks:
        try:
            row = _group_row(look)
        except Exception as error:  # noqa: BLE001 an error in one group must not hide the others
            empty = [""] * (len(_COLUMNS) - 2)
            row = [look.described.group_id, *empty, line(not_shown(error), "red")]
        if left_out is not None:
            del row[left_out]
        table.add_row(row[0], *([_joined(names, row)] if is_narrow else row[1:]))
    return table


def _protocol(described: DescribedGroup) -> str:
    """Return how a group gets its tasks: its assignor, or the protocol that has one of its own."""
    if described.group_type == "streams":
        return "KIP-1071"
    if described.protocol_name == STREAMS_PROTOCOL:
        return "Streams"
    is_classic = described.group_type in ("", "classic")
    return described.protocol_name or ("-" if is_classic else described.group_type)


def _joined(names: Sequence[str], row: Sequence[str | Text]) -> Text:
    """Return a row without its first cell as one text, for a narrow terminal."""
    parts = [
        f"{name} {content}" if name in _NUMBERS or name == "version" else str(content)
        for name, content in zip(names[1:], row[1:], strict=True)
        if str(content)
    ]
    return line(", ".join(parts), row[-1].style if isinstance(row[-1], Text) else "")


def not_shown(error: Exception) -> str:
    """Return the message for a group that cannot be shown."""
    return f"cannot be shown: {type(error).__name__}: {error}"


def _group_row(look: GroupInspection) -> list[str | Text]:
    described, versions = look.described, look.versions
    version, held_down = "", ""
    if versions is not None:
        ahead = versions.in_force < versions.possible
        version = f"{versions.in_force} of {versions.possible}" if ahead else f"{versions.in_force}"
        names = [holder.client for holder in versions.holders]
        held_down = f"limited by {few(names)}" if names else ""
    others = [f for f in look.findings if f.kind not in _ABOUT_VERSIONS | NOTES]
    notes = f"{len(others)} finding{'s' if len(others) > 1 else ''}" if others else ""
    if others and (look.streams_group is not None or others[0].kind in _REFUSALS):
        notes = others[0].sentence
    members = "?" if is_broker_side(described) else str(len(described.members))
    if look.streams_group is not None:
        members, version = streams_row(look.streams_group)
    return [
        described.group_id,
        described.state,
        _protocol(described),
        members,
        number(look.lag),
        version,
        few(sorted({member.evidence.spelled for member in look.members})) if versions else "",
        line("; ".join(filter(None, (held_down, notes))), "yellow"),
    ]
