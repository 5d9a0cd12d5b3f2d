"""Where feature levels are: a Kafka cluster, a group of ours, a folder; one face for all three."""

import getpass
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from assignor.cli.toolkit.connect import ConnectFailure, NotAllowed
from assignor.levels import (
    Described,
    Survey,
    Told,
    members_support,
    supported_by_all,
    written_versions,
)
from assignor.levels.log import FeatureLog, LogState, Note, look_at_log, opened_log, supported_here
from assignor.stores import FolderDisk, StoreError
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    KAFKA_FEATURES,
    NATIVE_FEATURES,
    PERSISTENT_METADATA,
    ControllerView,
    FeatureUpdate,
    NodeSupport,
    Role,
    UpdateOutcome,
    UpdateRequest,
    decide_update,
    newest_levels,
)
from probing.persisted_formats import (
    PersistedNumbers,
    PersistedSettings,
    Written,
    decide_persistent_version,
)

if TYPE_CHECKING:
    from assignor.adapters.admin import Admin


class Place(Protocol):
    """Where levels are."""

    def describe(self) -> Described:
        """Say what is agreed and what is supported."""
        ...

    def survey(self) -> Survey:
        """Ask each member or broker what it supports."""
        ...

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[Told, ...]:
        """Change levels, all of them or none; one answer a feature, in their order."""
        ...


class ClusterPlace:
    """A Kafka cluster; its controller decides.

    Args:
        admin: the cluster.
        from_controller: describe what the active controller tells.
        broker: describe what the broker with this node id tells; None for any.
    """

    def __init__(
        self, admin: "Admin", *, from_controller: bool = False, broker: int | None = None
    ) -> None:
        self._admin, self._from_controller, self._broker = admin, from_controller, broker

    def describe(self) -> Described:
        """Ask a node."""
        from assignor.adapters.admin import read_features  # noqa: PLC0415 the client is an extra

        told = read_features(
            self._admin, broker=self._broker, from_controller=self._from_controller
        )
        return Described(
            source=told.node,
            table=KAFKA_FEATURES,
            supported=told.supported,
            finalized=told.finalized,
        )

    def survey(self) -> Survey:
        """Ask every broker."""
        from assignor.adapters.admin import read_all_features  # noqa: PLC0415 as above

        told = read_all_features(self._admin)
        nodes = tuple(
            NodeSupport(node_id=one.node.removeprefix("broker "), ranges=one.supported)
            for one in told
        )
        described = Described(
            source=f"the cluster of {len(told)} brokers",
            table=KAFKA_FEATURES,
            supported=supported_by_all(nodes),
            finalized=newest_levels(one.finalized for one in told),
        )
        return Survey(described=described, nodes=nodes)

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[Told, ...]:
        """Ask the controller."""
        from assignor.adapters.admin import update_features  # noqa: PLC0415 as above

        levels = self.describe().finalized
        answers = update_features(self._admin, updates, dry_run=dry_run)
        return tuple(
            Told(
                feature=update.feature,
                old=levels.level_of(update.feature),
                new=max(update.level, 0),
                error=answer.error,
                why=answer.why,
            )
            for update, answer in zip(updates, answers, strict=True)
        )


class GroupPlace:
    """A group of ours: its topic says what is agreed, its members what they support.

    Args:
        admin: the cluster that it lives on.
        group: its id.
    """

    def __init__(self, admin: "Admin", group: str) -> None:
        from assignor.adapters.admin import FeatureTopic  # noqa: PLC0415 as above

        self._admin, self._group = admin, group
        self._topic = FeatureTopic(admin, group)

    def describe(self) -> Described:
        """Read the topic, and ask the group's coordinator for its members."""
        nodes, notes = self._nodes()
        view = self._topic.look()
        if not nodes:
            notes = (f"group {self._group} has no members now: nobody was asked",)
        return Described(
            source=f"group {self._group}, {len(nodes)} members",
            table=NATIVE_FEATURES,
            supported=supported_by_all(nodes),
            finalized=view.state.levels,
            minimums=view.state.minimums,
            notes=(*notes, *view.warnings),
        )

    def survey(self) -> Survey:
        """Ask the group's coordinator for what each member wrote."""
        from assignor.adapters.admin import describe_group  # noqa: PLC0415 as above

        members = describe_group(self._admin, self._group).members
        nodes, _ = members_support(members)
        return Survey(described=self.describe(), nodes=nodes, versions=written_versions(members))

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[Told, ...]:
        """Decide here, by the rules of a controller, and write the topic."""
        nodes, _ = self._nodes()
        view = self._topic.look()
        outcome = _decide(view.state, nodes, updates, dry_run=dry_run)
        dropped: tuple[str, ...] = ()
        if outcome.records:
            levels = {record.feature: record.level for record in outcome.records}
            members = {str(node.node_id): node.ranges for node in nodes}
            dropped = self._topic.change(view, levels, _note(), members).dropped
        return _told(outcome, dropped)

    def _nodes(self) -> tuple[tuple[NodeSupport, ...], tuple[str, ...]]:
        from assignor.adapters.admin import describe_group  # noqa: PLC0415 as above

        return members_support(describe_group(self._admin, self._group).members)


class FolderPlace:
    """A feature log in a folder.

    Args:
        folder: as `assignor storage format` made it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def describe(self) -> Described:
        """Read the log; a writer is not disturbed."""
        log = look_at_log(FolderDisk(self._folder))
        return Described(
            source=f"the feature log in {self._folder}",
            table=NATIVE_FEATURES,
            supported=supported_by_all(_registered(log)),
            finalized=log.state.levels,
            minimums=log.state.minimums,
            notes=log.warnings,
        )

    def survey(self) -> Survey:
        """Read what the registered members support; none are known below level 2 of the log."""
        state = look_at_log(FolderDisk(self._folder)).state
        described = self.describe()
        if not state.ranges_by_member:
            said = f"{described.source} knows no members now: nobody was asked"
            described = replace(described, notes=(*described.notes, said))
        return Survey(described=described, nodes=_members(state))

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[Told, ...]:
        """Decide here and write the log."""
        with opened_log(self._folder) as log:
            outcome = _decide(log.state, _registered(log), updates, dry_run=dry_run)
            dropped: tuple[str, ...] = ()
            if outcome.records:
                levels = {record.feature: record.level for record in outcome.records}
                dropped = log.change(levels, _note()).dropped
        return _told(outcome, dropped)


def store_failure(error: StoreError, folder: Path) -> click.ClickException:
    """End a command: a disk that refuses is the surroundings' fault, all else an answer."""
    kind = ConnectFailure if isinstance(error.__cause__, OSError) else NotAllowed
    where = "" if str(folder) in str(error) else f"{folder}: "
    return kind(f"{where}{error}")


def closing_note(described: Described, updates: Sequence[FeatureUpdate]) -> str:
    """Warn of what closes the way back to older releases (KIP-384); empty where nothing does."""
    wanted = {update.feature: update.level for update in updates}
    level = wanted.get(PERSISTENT_METADATA, 0)
    now = described.finalized.level_of(PERSISTENT_METADATA)
    if described.table.find(PERSISTENT_METADATA) is None or level <= now:
        return ""
    wire = described.finalized.level_of(ASSIGNMENT_PROTOCOL)
    decision = decide_persistent_version(
        PersistedNumbers(
            settings=PersistedSettings(persistent_metadata_version=level),
            written=Written(version=max(now, 1), at_ms=0),
            is_wire_raised=wanted.get(ASSIGNMENT_PROTOCOL, 0) > wire,
        )
    )
    return decision.why if decision.closes_way_back else ""


def _registered(log: FeatureLog) -> tuple[NodeSupport, ...]:
    """The members that the log remembers, and this program, which is to read it afterwards."""
    here = NodeSupport(node_id="this program", role=Role.MEMBER, ranges=supported_here())
    return (*_members(log.state), here)


def _members(state: LogState) -> tuple[NodeSupport, ...]:
    return tuple(
        NodeSupport(node_id=name, role=Role.MEMBER, ranges=ranges)
        for name, ranges in sorted(state.ranges_by_member.items())
    )


def _decide(
    state: LogState,
    nodes: Sequence[NodeSupport],
    updates: Sequence[FeatureUpdate],
    *,
    dry_run: bool,
) -> UpdateOutcome:
    view = ControllerView(
        table=NATIVE_FEATURES,
        finalized=state.levels,
        nodes=tuple(nodes),
        floors=state.minimums,
    )
    return decide_update(view, UpdateRequest(updates=tuple(updates), validate_only=dry_run))


def _told(outcome: UpdateOutcome, dropped: tuple[str, ...]) -> tuple[Told, ...]:
    return tuple(
        Told(
            feature=row.feature,
            old=row.old_level,
            new=row.new_level,
            error="" if row.ok else str(row.error),
            why=row.why,
            dropped=dropped if row.feature == PERSISTENT_METADATA else (),
        )
        for row in outcome.results
    )


def _note() -> Note:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    who = f"{user}@{socket.gethostname()}"
    return Note(at_ms=time.time_ns() // 1_000_000, who=who, why="assignor features")
