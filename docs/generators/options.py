"""docs/operations.md: its tables of settings, of a member's options, and of a client's settings."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from assignor import AssignmentConfig
from assignor.adapters.client_settings import CLIENT_CHECKS, Checked
from assignor.adapters.membership import OPTION_GROUPS
from assignor.config import dotted
from assignor.option_fields import option_text
from docs.generators.negotiation import table

PATH = "docs/operations.md"

_PAGE = Path(__file__).resolve().parents[1] / "operations.md"
_END = "\n<!-- end -->"


def render() -> str:
    """Return the page with its tables as the declarations are."""
    page = _PAGE.read_text(encoding="utf-8")
    options = [each for kind in OPTION_GROUPS.values() for each in fields(kind)]
    for name, text in (
        ("settings", settings_table(fields(AssignmentConfig))),
        ("options", options_table(options)),
        ("settings of the client", _checked_table()),
    ):
        begin = f"<!-- {name}: `python -m docs.generate` writes this table -->\n"
        start = page.index(begin) + len(begin)
        page = page[:start] + text + page[page.index(_END, start) :]
    return page


def settings_table(settings: Iterable[Field[Any]]) -> str:
    """Return a row for each setting, by Kafka's name."""
    rows = []
    for each in settings:
        known = option_text(each)
        allowed = known.kind.words if known.kind else ""
        if known.of_member:
            allowed += f"; of a member in Python {known.of_member.words}"
        default = each.default if each.default == "none" else json.dumps(each.default)
        default = "empty" if each.default == () else default
        rows.append((f"`{dotted(each.name)}`", default, allowed, known.text))
    return table(("setting", "default", "allowed", "meaning"), rows)


def options_table(options: Iterable[Field[Any]]) -> str:
    """Return a row for each keyword option."""
    rows = []
    for each in options:
        page = option_text(each).page
        more = f" See [{page.partition('.md')[0]}]({page})." if page else ""
        rows.append((f"`{each.name}`", f"`{each.default!r}`", option_text(each).help + more))
    return table(("argument", "default", "meaning"), rows)


def _checked_table() -> str:
    rows = [
        (", ".join(f"`{name}`" for name in names), row.kind.words, row.why)
        for row, names in _by_row()
    ]
    return table(("setting", "takes", "what another value breaks"), rows)


def _by_row() -> Iterator[tuple[Checked, list[str]]]:
    for row in dict.fromkeys(CLIENT_CHECKS.values()):
        yield row, [name for name, each in CLIENT_CHECKS.items() if each is row]
