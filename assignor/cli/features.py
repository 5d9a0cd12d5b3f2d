"""``assignor features``: finalized levels of a Kafka cluster, of a group, or of a folder."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from assignor.cli.connect import BadConnection, connect_options, connected, target_of
from assignor.cli.features_targets import (
    ClusterPlace,
    FolderPlace,
    GroupPlace,
    Place,
    closing_note,
    store_failure,
)
from assignor.cli.features_text import (
    described_json,
    described_text,
    lowering_question,
    told_json,
    told_sentence,
)
from assignor.cli.lazy import CONTEXT
from assignor.errors import ConfigError
from assignor.feature_plans import (
    Described,
    Told,
    disabling,
    lower_all,
    named_updates,
    raise_all,
)
from assignor.stores import StoreError
from probing.features import FeatureUpdate, UpdateKind

Command = Callable[..., Any]
Plan = Callable[[Described], tuple[FeatureUpdate, ...]]

_EXIT = """
Exit status: 0 done, or in a dry run possible; 1 refused, nothing is changed; 2 wrong usage; 3 no
broker or no disk.
"""


class _Refused(click.exceptions.Exit):
    """The answer is no; the sentences are printed already."""

    def __init__(self) -> None:
        super().__init__(1)


@click.group(context_settings=CONTEXT)
def features() -> None:
    """Look at finalized feature levels and change them (KIP-584, KIP-778).

    Of a Kafka cluster (--bootstrap-server), of a group of ours on one (with --group), or of a
    feature log in a folder (--directory). A level is a number or a name: 21, 3.9-IV0, 3.9.
    """


def place_options(command: Command) -> Command:
    """Add the options that say where levels are."""
    for option in (
        click.option("--format", "style", type=click.Choice(("text", "json")), default="text"),
        click.option(
            "--directory",
            type=click.Path(file_okay=False, path_type=Path),
            help="A feature log made by `assignor storage format`.",
        ),
        click.option("--group", metavar="ID", help="A group of ours; else the cluster itself."),
    ):
        command = option(command)
    return connect_options(command)


def update_options(command: Command) -> Command:
    """Add the options that all changes have."""
    return click.option("--dry-run", is_flag=True, help="Say what would come of it, do nothing.")(
        place_options(command)
    )


def lower_options(command: Command) -> Command:
    """Add the options of changes that go down."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask before levels go down."),
        click.option("--unsafe", is_flag=True, help="Even if something is lost for good."),
    ):
        command = option(command)
    return update_options(command)


def level_options(command: Command) -> Command:
    """Add `--metadata` and `--feature`."""
    for option in (
        click.option(
            "--feature",
            "named",
            multiple=True,
            metavar="NAME=LEVEL",
            help="A feature and its level; may be repeated.",
        ),
        click.option(
            "--metadata",
            metavar="LEVEL",
            help="Level of metadata.version; of a group, of persistent.metadata.version.",
        ),
    ):
        command = option(command)
    return command


_RELEASE = click.option(
    "--release-version",
    "release",
    metavar="X.Y",
    help="Levels of this release of Kafka instead of the latest known here.",
)


def _help(text: str, examples: str) -> str:
    return f"{text}\n\n\b\nExamples:\n{examples}\n{_EXIT}"


@features.command(
    help=_help(
        "Show what is finalized, with its epoch, and what is supported.\n\nAny broker is asked;"
        " with --from-controller the active controller, whose port must be reachable from here.",
        "  assignor features describe --bootstrap-server broker:9092\n"
        "  assignor features describe --bootstrap-server broker:9092 --group orders\n"
        "  assignor features describe --directory state --format json",
    )
)
@click.option("--from-controller", is_flag=True, help="Ask the active controller, not a broker.")
@place_options
def describe(*, from_controller: bool, style: str, **where: Any) -> None:
    """Entry point of the subcommand."""
    if from_controller and (where["group"] or where["directory"]):
        raise click.UsageError("--from-controller is about a cluster; leave --group, --directory")
    with _place(from_controller=from_controller, **where) as place:
        described = place.describe()
    if style == "json":
        click.echo(json.dumps(described_json(described)))
    else:
        described_text(described)


@features.command(
    help=_help(
        "Raise levels.",
        "  assignor features upgrade --bootstrap-server broker:9092 --metadata 3.9\n"
        "  assignor features upgrade --bootstrap-server broker:9092 --feature group.version=1\n"
        "  assignor features upgrade --bootstrap-server broker:9092 --group orders \\\n"
        "      --feature assignment.protocol=101",
    )
)
@level_options
@update_options
def upgrade(*, metadata: str | None, named: Sequence[str], **rest: Any) -> None:
    """Entry point of the subcommand."""

    def plan(described: Described) -> tuple[FeatureUpdate, ...]:
        return named_updates(described, metadata=metadata, features=named, kind=UpdateKind.UPGRADE)

    _change(plan, **rest)


@features.command(
    help=_help(
        "Lower levels; refused where something would be lost, unless --unsafe.",
        "  assignor features downgrade --bootstrap-server broker:9092 --metadata 3.8-IV0\n"
        "  assignor features downgrade --directory state --metadata 1 --unsafe --yes",
    )
)
@level_options
@lower_options
def downgrade(*, metadata: str | None, named: Sequence[str], unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""

    def plan(described: Described) -> tuple[FeatureUpdate, ...]:
        return named_updates(described, metadata=metadata, features=named, kind=_down(unsafe))

    _change(plan, **rest)


@features.command(
    help=_help(
        "Take features out; they are off afterwards.",
        "  assignor features disable --bootstrap-server broker:9092 --feature group.version",
    )
)
@click.option("--feature", "named", multiple=True, metavar="NAME", help="May be repeated.")
@lower_options
def disable(*, named: Sequence[str], unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda _: disabling(named, _down(unsafe)), **rest)


@features.command(
    "upgrade-all",
    help=_help(
        "Raise every feature to the latest level known here and supported there.\n\nFeatures that"
        " have no way back are left; name them with `upgrade`.",
        "  assignor features upgrade-all --bootstrap-server broker:9092 --dry-run\n"
        "  assignor features upgrade-all --bootstrap-server broker:9092 --release-version 4.0",
    ),
)
@_RELEASE
@update_options
def upgrade_all(*, release: str | None, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda described: raise_all(described, release), **rest)


@features.command(
    "downgrade-all",
    help=_help(
        "Lower every feature to what is known here, or to what a release has.",
        "  assignor features downgrade-all --bootstrap-server broker:9092 --release-version 3.9",
    ),
)
@_RELEASE
@lower_options
def downgrade_all(*, release: str | None, unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda described: lower_all(described, release, _down(unsafe)), **rest)


def _down(unsafe: bool) -> UpdateKind:  # noqa: FBT001 one flag, named by its parameter
    return UpdateKind.UNSAFE_DOWNGRADE if unsafe else UpdateKind.SAFE_DOWNGRADE


def _change(plan: Plan, *, dry_run: bool, style: str, yes: bool = True, **where: Any) -> None:
    """Plan, ask, do, tell."""
    with _place(**where) as place:
        described = place.describe()
        try:
            updates = plan(described)
        except ConfigError as error:
            raise click.UsageError(f"{error}.") from None
        for said in described.notes:
            click.echo(said, err=True)
        if not dry_run and not yes:
            _confirm(described, updates)
        told = place.update(updates, dry_run=dry_run) if updates else ()
    _tell(described, told, dry_run=dry_run, style=style, note=closing_note(described, updates))


def _tell(
    described: Described, told: Sequence[Told], *, dry_run: bool, style: str, note: str
) -> None:
    """Print what became of it.

    Raises:
        _Refused: a line could not be done.
    """
    table = described.table
    if style == "json":
        body = told_json(table, told, dry_run=dry_run)
        click.echo(json.dumps(body | {"warning": note or None}))
    elif not told:
        click.echo(f"nothing to do, told by {described.source}")
    for row in told:
        if style != "json" or row.error:
            click.echo(told_sentence(table, row, dry_run=dry_run), err=bool(row.error))
        for lost in row.dropped:
            click.echo(f"dropped: {lost}", err=True)
    if any(row.error for row in told):
        raise _Refused
    if note:
        click.echo(f"warning: {note}", err=True)


def _confirm(described: Described, updates: Sequence[FeatureUpdate]) -> None:
    """Ask before levels go down.

    Raises:
        UsageError: there is nobody to ask.
        Abort: the answer is no.
    """
    levels = described.finalized
    rows = [
        (update.feature, levels.level_of(update.feature), max(update.level, 0))
        for update in updates
        if max(update.level, 0) < levels.level_of(update.feature)
    ]
    if not rows:
        return
    question = lowering_question(described.table, rows)
    if not _is_terminal():
        raise click.UsageError(f"{question} Nobody is here to answer; say --yes.")
    if not click.confirm(question, err=True):
        click.echo("nothing is changed", err=True)
        raise _Refused


@contextmanager
def _place(
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    timeout: float | None,
    group: str | None,
    directory: Path | None,
    from_controller: bool = False,
) -> Iterator[Place]:
    """Connect to where the levels are; failures in the block end the command."""
    if directory is not None and (bootstrap_server or command_config or group):
        raise BadConnection("--directory is a place of its own; leave the other options.")
    try:
        if directory is not None:
            yield FolderPlace(directory)
            return
        with connected(target_of(bootstrap_server, command_config, timeout)) as admin:
            if group:
                yield GroupPlace(admin, group)
            else:
                yield ClusterPlace(admin, from_controller=from_controller)
    except StoreError as error:
        raise store_failure(error, directory or Path(f"group {group}")) from None


def _is_terminal() -> bool:
    return sys.stdin.isatty()
