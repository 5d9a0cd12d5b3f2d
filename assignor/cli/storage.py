"""``assignor storage``: make the folder of a feature log, and look into it (KIP-778)."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from assignor.cli.features.targets import store_failure
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
_DISK = {3: "the disk refused"}
_directory = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The folder of a feature log.",
)


@click.group(
    "storage",
    cls=Group,
    short_help="Make the folder of a feature log, and look into it.",
    examples="PROGRAM storage format --directory state/features",
    exits={1: "it was formatted before, or it is not or broken"} | _DISK,
)
def storage() -> None:
    """Make the folder of a feature log, and look into it."""


@storage.command(
    "format",
    short_help="Make a feature log in a folder.",
    examples=_EXAMPLES,
    exits={0: "it is formatted", 1: "it was formatted before", 2: "an unknown level"} | _DISK,
)
@_directory
@click.option(
    "--metadata-version",
    metavar="LEVEL",
    default=_DEFAULT_LEVEL,
    show_default=True,
    help="First level of persistent.metadata.version; the default is the one all releases read.",
)
@click.option(
    "--feature",
    "named",
    multiple=True,
    metavar="NAME=LEVEL",
    help="A feature and its level; may be repeated.",
)
@click.option("--ignore-formatted", is_flag=True, help="Leave a formatted folder as it is.")
@format_option()
def format_(
    *,
    directory: Path,
    metadata_version: str,
    named: Sequence[str],
    ignore_formatted: bool,
    form: str,
) -> None:
    """Make a feature log in a folder, which is made if need be."""
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
    done = "formatted" if is_new else "was formatted before and is left as it is"
    print_line(f"{directory} {done}: {_text(found.levels)}")


@storage.command(
    "describe",
    examples="PROGRAM storage describe --directory state/features",
    exits={1: "it is not formatted, or broken"} | _DISK,
)
@_directory
@format_option()
def describe(*, directory: Path, form: str) -> None:
    """Say what a folder was formatted with, and what its log says now."""
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
    print_line(f"{log.batches} batches, written in format {state.format}; {members} members known")
    for warning in log.warnings:
        warn(warning)


def _levels(texts: Sequence[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals or name in levels:
            raise BadInput(f"{text!r}: say NAME=LEVEL, once for each feature")
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
    said = [
        f"{name} {level_text(NATIVE_FEATURES, name, level)}"
        for name, level in sorted(levels.items())
    ]
    return ", ".join(said) or "no levels"
