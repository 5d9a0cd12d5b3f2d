"""``assignor features``: finalized levels of a Kafka cluster, of a group, or of a folder."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from assignor.cli.features.options import (
    level_options,
    lower_options,
    place_options,
    release_version_option,
    update_options,
)
from assignor.cli.features.targets import (
    ClusterPlace,
    FolderPlace,
    GroupPlace,
    Place,
    closing_note,
    store_failure,
)
from assignor.cli.features.text import (
    described_json,
    described_text,
    lowering_question,
    needs_json,
    needs_text,
    told_json,
    told_sentence,
)
from assignor.cli.toolkit.commands import Group
from assignor.cli.toolkit.connect import NO_BROKER, connected, target_of
from assignor.cli.toolkit.exit_status import BadInput, say, warn
from assignor.cli.toolkit.text import SENTENCE_LIMIT, print_line
from assignor.errors import ConfigError
from assignor.levels import (
    Described,
    Told,
    disabling,
    lower_all,
    named_updates,
    needs_below,
    raise_all,
)
from assignor.stores import StoreError
from encoding import shown
from probing.features import FeatureUpdate, UpdateKind

Plan = Callable[[Described], tuple[FeatureUpdate, ...]]

_PLACES = "--bootstrap-server b:9092"
_ONE_NODE = "--from-controller and --node-id"
_EXITS = {3: f"{NO_BROKER}; the disk refused"}
_REFUSED = {1: "refused, nothing is changed"}
_CHANGE_EXITS = _EXITS | _REFUSED | {0: "done; in a dry run: possible"}


class _Refused(click.exceptions.Exit):
    """The answer is no; the sentences are printed already."""

    def __init__(self) -> None:
        super().__init__(1)


@click.group(
    "features",
    cls=Group,
    short_help="Show and change finalized feature levels.",
    examples=f"""
PROGRAM features describe {_PLACES}
PROGRAM features upgrade {_PLACES} --metadata 3.9
""",
    exits=_REFUSED | _EXITS,
)
def features() -> None:
    """Look at finalized feature levels and change them (KIP-584, KIP-778).

    Of a Kafka cluster (--bootstrap-server), of a group of ours on one (with --group), or of a
    feature log in a folder (--directory). A level is a number or a name: 21, 3.9-IV0, 3.9.
    """


@features.command(
    "describe",
    help="Show what is finalized, with its epoch, and what is supported.\n\nAny broker is asked;"
    " with --node-id that one, with --from-controller the active controller, whose port must be"
    " reachable from here.",
    short_help="Show what is finalized, with its epoch, and what is supported.",
    examples=f"""
PROGRAM features describe {_PLACES}
PROGRAM features describe {_PLACES} --group orders
PROGRAM features describe --directory state --format json
""",
    exits=_EXITS | {1: "this user may not ask"},
)
@click.option("--from-controller", is_flag=True, help="Ask the active controller, not a broker.")
@click.option(
    "--node-id",
    "broker",
    type=click.IntRange(min=0),
    metavar="N",
    help="Ask this broker; brokers learn of a new level one after the other.",
)
@place_options
def describe(*, from_controller: bool, broker: int | None, form: str, **where: Any) -> None:
    """Entry point of the subcommand."""
    asks_one = from_controller or broker is not None
    if asks_one and (where["group"] or where["directory"] or (from_controller and broker)):
        raise click.UsageError(
            f"{_ONE_NODE} name a node of a cluster; give one, and no other place"
        )
    with _place(from_controller=from_controller, broker=broker, **where) as place:
        described = place.describe()
    if form == "json":
        click.echo(json.dumps(described_json(described)))
    else:
        described_text(described)


@features.command(
    "upgrade",
    help="Raise levels.",
    examples=f"""
PROGRAM features upgrade {_PLACES} --metadata 3.9
PROGRAM features upgrade {_PLACES} --feature group.version=1
PROGRAM features upgrade {_PLACES} --group orders \\
    --feature assignment.protocol=101
""",
    exits=_CHANGE_EXITS,
)
@level_options
@update_options
def upgrade(*, metadata: str | None, named: Sequence[str], **rest: Any) -> None:
    """Entry point of the subcommand."""

    def plan(described: Described) -> tuple[FeatureUpdate, ...]:
        return named_updates(described, metadata=metadata, features=named, kind=UpdateKind.UPGRADE)

    _change(plan, **rest)


@features.command(
    "downgrade",
    help="Lower levels; refused where something would be lost, unless --unsafe.",
    examples=f"""
PROGRAM features downgrade {_PLACES} --metadata 3.8-IV0
PROGRAM features downgrade --directory state --metadata 1 --unsafe --yes
""",
    exits=_CHANGE_EXITS,
)
@level_options
@lower_options
def downgrade(*, metadata: str | None, named: Sequence[str], unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""

    def plan(described: Described) -> tuple[FeatureUpdate, ...]:
        return named_updates(described, metadata=metadata, features=named, kind=_down(unsafe))

    _change(plan, **rest)


@features.command(
    "disable",
    help="Take features out; they are off afterwards.",
    examples=f"PROGRAM features disable {_PLACES} --feature group.version",
    exits=_CHANGE_EXITS,
)
@click.option(
    "--feature", "named", multiple=True, metavar="NAME", help="A feature; may be repeated."
)
@lower_options
def disable(*, named: Sequence[str], unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda _: disabling(named, _down(unsafe)), **rest)


@features.command(
    "upgrade-all",
    help="Raise every feature to the latest level known here and supported there.\n\nFeatures that"
    " have no way back are left; name them with `upgrade`.",
    short_help="Raise every feature to the latest level known here and supported there.",
    examples=f"""
PROGRAM features upgrade-all {_PLACES} --dry-run
PROGRAM features upgrade-all {_PLACES} --release-version 4.0
""",
    exits=_CHANGE_EXITS,
)
@release_version_option
@update_options
def upgrade_all(*, release: str | None, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda described: raise_all(described, release), **rest)


@features.command(
    "downgrade-all",
    help="Lower every feature to what is known here, or to what a release has.",
    examples=f"PROGRAM features downgrade-all {_PLACES} --dry-run",
    exits=_CHANGE_EXITS,
)
@release_version_option
@lower_options
def downgrade_all(*, release: str | None, unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda described: lower_all(described, release, _down(unsafe)), **rest)


@features.command(
    "still-needed",
    help="Say who still needs levels below a minimum that is planned, and change nothing.\n\nAsk"
    " before a program is deployed that no longer supports old levels: each member of a group,"
    " or each broker of a cluster, is named that supports no level from the given one on or"
    " writes an older version now, and so is a finalized level below.",
    short_help="Say who still needs levels below a minimum that is planned.",
    examples=f"""
PROGRAM features still-needed {_PLACES} --metadata 3.9
PROGRAM features still-needed {_PLACES} --group orders \\
    --feature assignment.protocol=11
""",
    exits=_EXITS | {0: "nobody needs them", 1: "somebody does"},
)
@level_options
@place_options
def still_needed(*, metadata: str | None, named: Sequence[str], form: str, **where: Any) -> None:
    """Entry point of the subcommand."""
    with _place(**where) as place:
        survey = place.survey()
    try:
        asked = named_updates(
            survey.described, metadata=metadata, features=named, kind=UpdateKind.UPGRADE
        )
        needs = {one.feature: needs_below(survey, one.feature, one.level) for one in asked}
    except ConfigError as error:
        raise BadInput(str(error)) from None
    for said in survey.described.notes:
        warn(said)
    minimums = {one.feature: one.level for one in asked}
    if form == "json":
        click.echo(json.dumps(needs_json(survey, minimums, needs)))
    else:
        needs_text(survey, minimums, needs)
    if any(needs.values()):
        raise _Refused


def _down(unsafe: bool) -> UpdateKind:  # noqa: FBT001 one flag, named by its parameter
    return UpdateKind.UNSAFE_DOWNGRADE if unsafe else UpdateKind.SAFE_DOWNGRADE


def _change(plan: Plan, *, dry_run: bool, form: str, yes: bool = True, **where: Any) -> None:
    """Plan, ask, do, tell."""
    with _place(**where) as place:
        described = place.describe()
        try:
            updates = plan(described)
        except ConfigError as error:
            raise BadInput(str(error)) from None
        for said in described.notes:
            warn(said)
        if not dry_run and not yes:
            _confirm(described, updates)
        told = place.update(updates, dry_run=dry_run) if updates else ()
    _tell(described, told, dry_run=dry_run, form=form, note=closing_note(described, updates))


def _tell(
    described: Described, told: Sequence[Told], *, dry_run: bool, form: str, note: str
) -> None:
    """Print what became of it.

    Raises:
        _Refused: a line could not be done.
    """
    table = described.table
    if form == "json":
        body = told_json(table, told, dry_run=dry_run)
        click.echo(json.dumps(body | {"warnings": [note] if note else []}))
    elif not told:
        print_line(f"nothing to do, told by {described.source}")
    for row in told:
        sentence = told_sentence(table, row, dry_run=dry_run)
        if row.error:
            say("assignor", sentence)
        elif form != "json":
            print_line(sentence)
        for lost in row.dropped:
            warn(f"dropped: {lost}")
    if any(row.error for row in told):
        raise _Refused
    if note:
        warn(note)


def _confirm(described: Described, updates: Sequence[FeatureUpdate]) -> None:
    """Ask before levels go down.

    Raises:
        BadInput: there is nobody to ask.
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
    question = shown(lowering_question(described.table, rows), limit=SENTENCE_LIMIT)
    if not _is_terminal():
        raise BadInput(f"{question} Nobody is here to answer; say --yes")
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
    broker: int | None = None,
) -> Iterator[Place]:
    """Connect to where the levels are; failures in the block end the command."""
    if directory is not None and (bootstrap_server or command_config or group):
        raise BadInput("--directory is a place of its own; leave the other options out")
    try:
        if directory is not None:
            yield FolderPlace(directory)
            return
        with connected(target_of(bootstrap_server, command_config, timeout)) as admin:
            if group:
                yield GroupPlace(admin, group)
            else:
                yield ClusterPlace(admin, from_controller=from_controller, broker=broker)
    except StoreError as error:
        raise store_failure(error, directory or Path(f"group {group}")) from None


def _is_terminal() -> bool:
    return sys.stdin.isatty()
