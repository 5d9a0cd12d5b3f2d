"""The table of ``assignor inspect --all``: one row per group."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from assignor.cli.inspect.columns import name_width, number, plain_table
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
_RELEASE: Final = 6
_REFUSALS: Final = frozenset({"failed", "not-told"})
NOTES: Final = frozenset({"not-shown", "not-read"})
"""Kinds of findings that need no action."""


def render_groups(looks: Sequence[GroupInspection], *, width: int | None = None) -> TextTable:
    """Return a table with one row per group.

    Args:
        looks: the groups; for a group that cannot be shown, the row holds the error.
        width: width of the terminal, to which group names may be cut; None: names are not cut.
    """
    table = plain_table("group", "state", "assignor", right=("members", "lag"))
    table.add_column("version", no_wrap=True)
    has_releases = width is None or width >= _WIDE
    if has_releases:
        table.add_column("release", overflow="fold")
    table.add_column("findings", overflow="fold")
    if width is not None:
        table.columns[0].max_width = name_width(width)
    for look in looks:
        try:
            row = _group_row(look)
            if not has_releases:
                del row[_RELEASE]
        except Exception as error:  # noqa: BLE001 an error in one group must not hide the others
            empty = [""] * (len(table.columns) - 2)
            row = [look.described.group_id, *empty, line(not_shown(error), "red")]
        table.add_row(*row)
    return table


def _protocol(described: DescribedGroup) -> str:
    """Return how a group gets its tasks: its assignor, or the protocol that has one of its own."""
    if described.group_type == "streams":
        return "KIP-1071"
    if described.protocol_name == STREAMS_PROTOCOL:
        return "Streams"
    is_classic = described.group_type in ("", "classic")
    return described.protocol_name or ("-" if is_classic else described.group_type)


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
