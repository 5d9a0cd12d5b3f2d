"""All groups of a cluster for people, one row each."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from assignor.cli.inspect.columns import name_width, number, plain_table
from assignor.cli.toolkit.text import TextTable, line
from assignor.inspection import GroupInspection, few, is_broker_side

_ABOUT_VERSIONS: Final = frozenset({"holds-version", "before-probing"})


def render_groups(looks: Sequence[GroupInspection], *, width: int | None = None) -> TextTable:
    """One row a group.

    Args:
        looks: the groups; one that cannot be shown costs its own row only.
        width: of the terminal, to which names of groups may be cut; None: they are not cut.
    """
    table = plain_table("group", "state", "assignor", right=("members", "lag"))
    table.add_column("version", no_wrap=True)
    table.add_column("to know", overflow="fold")
    if width is not None:
        table.columns[0].max_width = name_width(width)
    for look in looks:
        try:
            row = _group_row(look)
        except Exception as error:  # noqa: BLE001 a defect at one group hides no other group
            empty = [""] * 5
            row = [look.described.group_id, *empty, line(not_shown(error), "red")]
        table.add_row(*row)
    return table


def not_shown(error: Exception) -> str:
    """Say why a group cannot be shown."""
    return f"cannot be shown: {type(error).__name__}: {error}"


def _group_row(look: GroupInspection) -> list[str | Text]:
    described, versions = look.described, look.versions
    version, said = "", ""
    if versions is not None:
        ahead = versions.in_force < versions.possible
        version = f"{versions.in_force} of {versions.possible}" if ahead else f"{versions.in_force}"
        names = [one.client for one in versions.holders]
        said = f"held down by {few(names)}" if names else ""
    others = [one for one in look.findings if one.kind not in _ABOUT_VERSIONS]
    notes = f"{len(others)} finding{'s' if len(others) > 1 else ''}" if others else ""
    if others and not look.members:
        notes = others[0].sentence
    return [
        described.group_id,
        described.state,
        described.protocol_name or described.group_type or described.protocol_type,
        "?" if is_broker_side(described) else str(len(described.members)),
        number(look.lag),
        version,
        line("; ".join(filter(None, (said, notes))), "yellow"),
    ]
