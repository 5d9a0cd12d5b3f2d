"""``assignor features``: finalized feature levels of a Kafka cluster, a group, or a feature log."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from assignor.cli.features.confirmation import Refused, confirm
from assignor.cli.features.dependents import objections
from assignor.cli.features.level_admins import (
    ClusterLevelAdmin,
    DirectoryLevelAdmin,
    GroupLevelAdmin,
    LevelAdmin,
    closing_note,
    store_failure,
)
from assignor.cli.features.options import (
    level_options,
    location_options,
    lower_options,
    release_version_option,
    update_options,
)
from assignor.cli.features.text import (
    Change,
    described_json,
    described_text,
    error_sentences,
    lowering_question,
    needs_json,
    needs_text,
    result_sentence,
    results_json,
)
from assignor.cli.toolkit.commands import Group
from assignor.cli.toolkit.connect import NO_BROKER, connected, target_of
from assignor.cli.toolkit.exit_status import BadInput, say, warn
from assignor.cli.toolkit.text import print_line
from assignor.errors import ConfigError
from assignor.levels import (
    Described,
    disabling,
    lower_all,
    named_updates,
    needs_below,
    raise_all,
)
from assignor.stores import StoreError
from probing.features import FeatureUpdate, UpdateKind

Plan = Callable[[Described], tuple[FeatureUpdate, ...]]

_PLACES = "--bootstrap-server b:9092"
_NOT_TRIED = "UNSUPPORTED_VERSION"
"""Error of a dry run that brokers before Kafka 3.3 do not know."""
_NODE_OPTIONS = "--from-controller and --node-id"
_EXITS = {3: f"{NO_BROKER}, or the disk cannot be read or written"}
_REFUSED = {1: "rejected; nothing was changed"}
_CHANGE_EXITS = _EXITS | _REFUSED | {0: "changed; with --dry-run: the change is possible"}


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
    """Show and change finalized feature levels (KIP-584, KIP-778).

    The levels belong to a Kafka cluster (--bootstrap-server), to a group of this project on it
    (add --group), or to a feature log directory (--directory). A level is a number or a name: 21,
    3.9-IV0, 3.9.
    """


@features.command(
    "describe",
    help="Show finalized and supported levels, and the epoch.\n\nThe command asks any broker; with"
    " --node-id it asks this broker, with --from-controller the active controller, whose listener"
    " must be reachable.",
    short_help="Show finalized and supported levels, and the epoch.",
    examples=f"""
PROGRAM features describe {_PLACES}
PROGRAM features describe {_PLACES} --group orders
PROGRAM features describe --directory state --format json
""",
    exits=_EXITS | {1: "the user is not authorized"},
)
@click.option("--from-controller", is_flag=True, help="Ask the active controller, not a broker.")
@click.option(
    "--node-id",
    "broker",
    type=click.IntRange(min=0),
    metavar="N",
    help="Ask this broker; a new level does not reach all brokers at once.",
)
@location_options
def describe(*, from_controller: bool, broker: int | None, form: str, **where: Any) -> None:
    """Entry point of the subcommand."""
    asks_broker = broker is not None
    excluded = where["group"] or where["directory"] or (from_controller and asks_broker)
    if excluded and (from_controller or asks_broker):
        raise click.UsageError(
            f"{_NODE_OPTIONS} name a node of a cluster; give only one, without --group or "
            "--directory"
        )
    with _level_admin(from_controller=from_controller, broker=broker, **where) as admin:
        described = admin.describe()
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
    help="Lower levels; rejected if metadata would be lost, unless --unsafe is given.",
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
    help="Disable features (level 0).",
    examples=f"PROGRAM features disable {_PLACES} --feature group.version",
    exits=_CHANGE_EXITS,
)
@click.option(
    "--feature", "named", multiple=True, metavar="NAME", help="Feature to disable; may be repeated."
)
@lower_options
def disable(*, named: Sequence[str], unsafe: bool, **rest: Any) -> None:
    """Entry point of the subcommand."""
    _change(lambda _: disabling(named, _down(unsafe)), **rest)


@features.command(
    "upgrade-all",
    help="Raise every feature to the latest level that this program knows and the cluster or group"
    " supports.\n\nFeatures that cannot be downgraded are skipped; raise them with `upgrade`.",
    short_help="Raise every feature to the latest known and supported level.",
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
    help="Lower every feature to the latest level that this program, or a release, knows.",
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
    help="List members or brokers that need levels below a planned minimum; change nothing.\n\nRun"
    " this before you deploy a program that no longer supports old levels. It lists each member (or"
    " broker) that supports no level at or above the minimum or that writes an older version, and"
    " a finalized level below the minimum.",
    short_help="List members or brokers that need levels below a planned minimum.",
    examples=f"""
PROGRAM features still-needed {_PLACES} --metadata 3.9
PROGRAM features still-needed {_PLACES} --group orders \\
    --feature assignment.protocol=11
""",
    exits=_EXITS | {0: "no member or broker needs them", 1: "at least one needs them"},
)
@level_options
@location_options
def still_needed(*, metadata: str | None, named: Sequence[str], form: str, **where: Any) -> None:
    """Entry point of the subcommand."""
    with _level_admin(**where) as admin:
        survey = admin.survey()
    try:
        asked = named_updates(
            survey.described, metadata=metadata, features=named, kind=UpdateKind.UPGRADE
        )
        needs = {
            update.feature: needs_below(survey, update.feature, update.level) for update in asked
        }
    except ConfigError as error:
        raise BadInput(str(error)) from None
    for note in survey.described.notes:
        warn(note)
    minimums = {update.feature: update.level for update in asked}
    if form == "json":
        click.echo(json.dumps(needs_json(survey, minimums, needs)))
    else:
        needs_text(survey, minimums, needs)
    if any(needs.values()):
        raise Refused


def _down(unsafe: bool) -> UpdateKind:  # noqa: FBT001 one flag, named by its parameter
    return UpdateKind.UNSAFE_DOWNGRADE if unsafe else UpdateKind.SAFE_DOWNGRADE


def _change(
    plan: Plan, *, dry_run: bool, form: str, yes: bool = True, force: bool = True, **where: Any
) -> None:
    """Compute the updates, apply them, and print the result.

    Before levels are lowered it is tried whether they can be, and then asked for confirmation.

    Raises:
        Refused: live groups depend on a feature that is disabled, and `force` is not given.
    """
    with _level_admin(**where) as admin:
        described = admin.describe()
        try:
            updates = plan(described)
        except ConfigError as error:
            raise BadInput(str(error)) from None
        for warning in described.notes:
            warn(warning)
        refused = () if force else tuple(objections(admin, updates))
        for sentence in refused:
            say("assignor", sentence)
        if refused:
            raise Refused
        question = "" if dry_run or yes else lowering_question(described, updates)
        results = _updated(admin, updates, dry_run=True) if question else []
        if not any(row.error not in ("", _NOT_TRIED) for row, _ in results):
            if question:
                confirm(question)
            results = _updated(admin, updates, dry_run=dry_run)
        else:
            dry_run = True  # a change that is refused is not worth a question
    _tell(described, results, dry_run=dry_run, form=form, note=closing_note(described, updates))


def _updated(admin: LevelAdmin, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> list[Change]:
    """Change levels, or only ask whether they can be changed; nothing is sent without updates."""
    found = admin.update(updates, dry_run=dry_run) if updates else ()
    return [(row, update.kind) for row, update in zip(found, updates, strict=True)]


def _tell(
    described: Described, results: Sequence[Change], *, dry_run: bool, form: str, note: str
) -> None:
    """Print the result of each update; raise `Refused` if at least one was rejected."""
    table = described.table
    if form == "json":
        body = results_json(table, results, dry_run=dry_run)
        click.echo(json.dumps(body | {"warnings": [note] if note else []}))
    elif not results:
        print_line(f"nothing to change, according to {described.source}")
    for row, kind in results:
        if not row.error and form != "json":
            print_line(result_sentence(table, row, kind, dry_run=dry_run))
        for lost in row.dropped:
            warn(f"lost: {lost}")
    errors = tuple(error_sentences(table, results, dry_run=dry_run))
    for sentence in errors:
        say("assignor", sentence)
    if errors:
        raise Refused
    if note:
        warn(note)


@contextmanager
def _level_admin(
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    timeout: float | None,
    group: str | None,
    directory: Path | None,
    from_controller: bool = False,
    broker: int | None = None,
) -> Iterator[LevelAdmin]:
    """Yield access to the levels that the options name; failures in the block end the command."""
    if directory is not None and (bootstrap_server or command_config or group):
        raise BadInput("--directory excludes --bootstrap-server, --command-config and --group")
    try:
        if directory is not None:
            yield DirectoryLevelAdmin(directory)
            return
        with connected(target_of(bootstrap_server, command_config, timeout)) as admin:
            if group:
                yield GroupLevelAdmin(admin, group)
            else:
                yield ClusterLevelAdmin(admin, from_controller=from_controller, broker=broker)
    except StoreError as error:
        raise store_failure(error, directory or Path(f"group {group}")) from None
