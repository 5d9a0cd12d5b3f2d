"""``assignor storage``: create and inspect a feature log directory (KIP-778)."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from assignor.cli.features.level_admins import store_failure
from assignor.cli.toolkit.commands import Group
from assignor.cli.toolkit.exit_status import BadInput, warn
from assignor.cli.toolkit.options import format_option
from assignor.cli.toolkit.text import print_line, utc_time
from assignor.levels import level_text
from assignor.levels.log import LogFormat, format_log, look_at_log, read_format
from assignor.stores import FolderDisk, StoreError
from probing.features import NATIVE_FEATURES, PERSISTENT_METADATA, FeatureError

_DEFAULT_LEVEL = "1"


_EXAMPLES = """
PROGRAM storage format --directory state/features
PROGRAM storage format --directory state/features --metadata-version 2 \\
    --feature assignment.protocol=11 --ignore-formatted
"""
_DISK = {3: "the disk cannot be read or written"}
_directory = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The feature log directory.",
)


@click.group(
    "storage",
    cls=Group,
    short_help="Create and inspect a feature log directory.",
    examples="PROGRAM storage format --directory state/features",
    exits={1: "already formatted; or not formatted, or damaged"} | _DISK,
)
def storage() -> None:
    """Create and inspect a feature log directory."""


@storage.command(
    "format",
    short_help="Create a feature log.",
    examples=_EXAMPLES,
    exits={0: "formatted", 1: "already formatted", 2: "unknown feature or level"} | _DISK,
)
@_directory
@click.option(
    "--metadata-version",
    metavar="LEVEL",
    default=_DEFAULT_LEVEL,
    show_default=True,
    help="Initial level of persistent.metadata.version; all releases read the default.",
)
@click.option(
    "--feature",
    "named",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Initial level of a feature; may be repeated.",
)
@click.option("--ignore-formatted", is_flag=True, help="Succeed without changing a formatted log.")
@format_option()
def format_(
    *,
    directory: Path,
    metadata_version: str,
    named: Sequence[str],
    ignore_formatted: bool,
    form: str,
) -> None:
    """Create a feature log, and its directory if it does not exist."""
    levels = _levels((f"{PERSISTENT_METADATA}={metadata_version}", *named))
    disk = FolderDisk(directory)
    wanted = LogFormat(log_id=uuid4().hex, levels=levels, at_ms=time.time_ns() // 1_000_000)
    try:
        is_new = format_log(disk, wanted, ignore_formatted=ignore_formatted)
        found = read_format(disk)
    except StoreError as error:
        raise store_failure(error, directory) from None
    if form == "json":
        click.echo(json.dumps(_json(directory, found) | {"is_new": is_new}))
        return
    done = "is formatted" if is_new else "was already formatted; nothing was changed"
    print_line(f"{directory} {done}: {_text(found.levels)}")


@storage.command(
    "describe",
    examples="PROGRAM storage describe --directory state/features",
    exits={1: "not formatted, or damaged"} | _DISK,
)
@_directory
@format_option()
def describe(*, directory: Path, form: str) -> None:
    """Show the initial and the current levels of a feature log."""
    disk = FolderDisk(directory)
    try:
        log = look_at_log(disk)
    except StoreError as error:
        raise store_failure(error, directory) from None
    state, made = log.state, log.format
    if form == "json":
        body = _json(directory, made) | {
            "epoch": state.levels.epoch,
            "finalized": dict(state.levels.levels),
            "batches": log.batches,
            "format": state.format,
            "members": sorted(state.ranges_by_member),
            "changed_at_ms": state.note.at_ms or None,
            "changed_by": state.note.who or None,
            "warnings": list(log.warnings),
        }
        click.echo(json.dumps(body))
        return
    print_line(f"log {made.log_id}, formatted {utc_time(made.at_ms)}: {_text(made.levels)}")
    note = state.note
    changed = f", changed {utc_time(note.at_ms)} by {note.who}" if note.at_ms else ""
    print_line(f"epoch {state.levels.epoch}{changed}: {_text(state.levels.levels)}")
    members = len(state.ranges_by_member)
    print_line(f"{log.batches} batches in format {state.format}; {members} registered members")
    for warning in log.warnings:
        warn(warning)


def _levels(texts: Sequence[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals or name in levels:
            raise BadInput(f"{text!r}: give NAME=LEVEL, once for each feature")
        try:
            levels[name] = NATIVE_FEATURES.named(name).parse_level(level).number
        except FeatureError as error:
            raise BadInput(str(error)) from None
    return levels


def _json(directory: Path, made: LogFormat) -> dict[str, Any]:
    return {
        "directory": str(directory),
        "log_id": made.log_id,
        "formatted_at_ms": made.at_ms,
        "levels": dict(made.levels),
    }


def _text(levels: Any) -> str:
    parts = [
        f"{name} {level_text(NATIVE_FEATURES, name, level)}"
        for name, level in sorted(levels.items())
    ]
    return ", ".join(parts) or "no levels"
