"""``assignor features downgrade-topology``: take a group back to an older topology."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from assignor.cli.features.confirmation import confirm
from assignor.cli.features.reached_places import ReachedPlace, reached_place
from assignor.cli.toolkit import AnswerIsNo, BadInput, Command, format_option, imported_topology
from assignor.cli.toolkit.connect import NO_BROKER, connect_options
from assignor.errors import ConfigError, TopologyError
from assignor.topology import Topology, content_fingerprint
from probing.topologies import NEVER, Reached, lowered

_HELP = """Let the partitions of changed subtopologies return to an older topology.

A partition that has run in a new form never returns by itself. This command lowers the version that
is remembered as reached, with the next epoch. Partitions return as they are orphaned or moved by
balance: afterwards, bounce the members to the older program. The memory is lowered in one of three
places:

--group: for a live group, whose members have level_source=GroupLevels(...). The leader learns it
with its next look at the levels and tells all members; --wait waits for that.

--directory: for a live group that shares a feature log directory, level_source=FolderLevels(...).

--state-dir: in the state directory of a member that is stopped. Start it next: it tells the group.
"""


@click.command(
    "downgrade-topology",
    cls=Command,
    help=_HELP,
    short_help="Take a group back to an older topology of its application.",
    examples="""
PROGRAM features downgrade-topology --bootstrap-server b:9092 \\
    --group orders --topology app:FIRST --yes
PROGRAM features downgrade-topology --state-dir state/one \\
    --topology app:FIRST --application-id orders
""",
    exits={
        0: "lowered, or nothing is above that version; with --dry-run: it can be lowered",
        1: "the place does not remember the topology, cannot be lowered or was changed meanwhile;"
        " with --wait: a member has not learnt it",
        3: f"{NO_BROKER}, or the disk cannot be read or written",
    },
)
@click.option(
    "--topology", metavar="MODULE:NAME", required=True, help="The topology to go back to."
)
@click.option("--group", metavar="GROUP", help="Group id (application.id) of a live group.")
@connect_options
@click.option(
    "--directory",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Feature log directory, created by `assignor storage format`.",
)
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="State directory of a member that is stopped.",
)
@click.option(
    "--application-id", metavar="ID", help="Prefix of internal topics; default: the group id."
)
@click.option("--dry-run", is_flag=True, help="Show the result without changing anything.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait at most so long until all members of the group know it.",
)
@format_option()
def downgrade_topology(
    *,
    topology: str,
    application_id: str | None,
    dry_run: bool,
    yes: bool,
    wait_s: float | None,
    form: str,
    **where: Any,
) -> None:
    """Entry point of the subcommand."""
    application_id = _checked(where, application_id, wait_s)
    try:
        chosen = imported_topology(topology)
        forms = frozenset(map(content_fingerprint, chosen.subtopologies(application_id)))
    except (ConfigError, TopologyError) as error:
        raise BadInput(str(error)) from None
    with reached_place(**where, dry_run=dry_run) as place:
        memory = place.memory()
        if forms.isdisjoint(memory):
            raise AnswerIsNo(
                f"{place.name} remembers no subtopology of {topology} with application id"
                f" {application_id}; nothing is changed: check --topology and --application-id; if"
                " they are right, start a member with that topology first: the group then"
                " remembers it"
            )
        change = _change(memory, chosen, forms, is_stopped=where["state_dir"] is not None)
        if change.is_needed:
            _check_epoch(place, memory, change)
        if not dry_run and change.is_needed:
            if where["state_dir"] is None and not yes:
                confirm(f"Lower the topology that {place.name} remembers to {change.version}?")
            _check_kept(place, memory, place.remember(change.memory), change)
        members = None
        if wait_s is not None and not dry_run:
            members = place.wait(change.epoch, wait_s)
        if form == "json":
            click.echo(json.dumps(_object(change, dry_run=dry_run)))
        else:
            click.echo(_sentence(place, change, dry_run=dry_run, members=members))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A memory after the change; `is_needed`: it differs from the memory before.

    `forms` are those whose version is lowered.
    """

    memory: Mapping[bytes, Reached]
    forms: frozenset[bytes]
    version: int
    is_needed: bool

    @property
    def epoch(self) -> int:
        """The highest epoch."""
        return max(reached.epoch for reached in self.memory.values())


def _change(
    memory: Mapping[bytes, Reached],
    chosen: Topology,
    forms: frozenset[bytes],
    *,
    is_stopped: bool,
) -> _Change:
    """Return the memory of a place after the return to a topology.

    Args:
        memory: of the place.
        chosen: the topology to go back to.
        forms: content of its subtopologies.
        is_stopped: the place is that of one member, which has to tell the others.
    """
    above = {form for form, reached in memory.items() if reached.version > chosen.version}
    is_needed = bool(above) or is_stopped
    after = memory
    if is_needed:
        after = lowered(memory, forms | above, chosen.version, first=forms)
    returning = (forms | above) & after.keys()
    return _Change(memory=after, forms=returning, version=chosen.version, is_needed=is_needed)


def _check_epoch(place: ReachedPlace, memory: Mapping[bytes, Reached], change: _Change) -> None:
    """Check that the memory has a next epoch.

    Raises:
        AnswerIsNo: it has the highest epoch that leaders believe.
    """
    highest = max(reached.epoch for reached in memory.values())
    if change.epoch <= highest:
        raise AnswerIsNo(
            f"{place.name} remembers epoch {highest}, and there is no later one; nothing is"
            " changed: stop all members, delete the file reached-topologies in every state"
            " directory and feature log directory and the topic GROUP-reached-topologies, and"
            " start them with the older program"
        )


def _check_kept(
    place: ReachedPlace,
    before: Mapping[bytes, Reached],
    memory: Mapping[bytes, Reached],
    change: _Change,
) -> None:
    """Check what a place remembers after the change; entries that did not fit in stay as they were.

    Raises:
        AnswerIsNo: another writer was faster, so that a form is not lowered.
    """
    written = (r for f, r in memory.items() if f in change.memory or f not in before)
    above = max(written, key=lambda reached: reached.version, default=NEVER)
    if above.version > change.version:
        raise AnswerIsNo(
            f"{place.name} remembers version {above.version} in epoch {above.epoch} after version"
            f" {change.version} in epoch {change.epoch} was written: a member wrote at the same"
            " time; run the command again"
        )
    lost = sum(memory.get(form, NEVER) < change.memory.get(form, NEVER) for form in change.forms)
    if lost:
        raise AnswerIsNo(
            f"{place.name} does not remember {lost} of {len(change.forms)} subtopologies in epoch"
            f" {change.epoch} after they were written; run the command again"
        )


def _checked(where: Mapping[str, Any], application_id: str | None, wait_s: float | None) -> str:
    """Return the application id.

    Raises:
        BadInput: not one place is named, or options do not fit it.
    """
    places = [name for name in ("group", "directory", "state_dir") if where[name] is not None]
    if len(places) != 1:
        raise BadInput(
            "name one place: --group (with --bootstrap-server), --directory, --state-dir"
        )
    if places != ["group"] and (where["bootstrap_server"] or where["command_config"]):
        raise BadInput("--bootstrap-server and --command-config need --group")
    if places != ["group"] and wait_s is not None:
        raise BadInput("--wait needs --group: the members of other places are not known")
    if wait_s is not None and math.isnan(wait_s):
        raise BadInput("--wait nan is not a number of seconds")
    found: str | None = application_id or where["group"]
    if not found:
        raise BadInput("--application-id is missing: state stores and changelogs begin with it")
    return found


def _sentence(place: ReachedPlace, change: _Change, *, dry_run: bool, members: int | None) -> str:
    """Return the result; `members` know it, None if the command did not wait for them."""
    if not change.is_needed:
        return (
            f"nothing to lower: {place.name} remembers nothing above version {change.version},"
            f" in epoch {change.epoch}"
        )
    verb = "would remember" if dry_run else "remembers"
    sentence = f"{place.name} {verb} version {change.version} in epoch {change.epoch}"
    if dry_run:
        return sentence
    if members == 0:
        return (
            f"{sentence}; it has no members that could learn it: start them with version"
            f" {change.version}"
        )
    if members:
        return f"{sentence}, and all members know it; bounce them to version {change.version}"
    return f"{sentence}; {place.next_step(change.version)}"


def _object(change: _Change, *, dry_run: bool) -> dict[str, Any]:
    return {
        "version": change.version,
        "epoch": change.epoch,
        "forms": len(change.memory),
        "changed": change.is_needed and not dry_run,
        "dry_run": dry_run,
    }
