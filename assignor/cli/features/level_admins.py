"""One interface to feature levels for a Kafka cluster, a group, and a feature log."""

import getpass
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from assignor.cli.toolkit.connect import ConnectFailure, NotAllowed
from assignor.inspection import DescribedGroup
from assignor.levels import (
    Described,
    LevelResult,
    Survey,
    members_support,
    supported_by_all,
    written_versions,
)
from assignor.levels.log import FeatureLog, LogState, Note, look_at_log, opened_log, supported_here
from assignor.stores import FolderDisk, StoreError
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    KAFKA_FEATURES,
    MAX_LEVEL,
    NATIVE_FEATURES,
    PERSISTENT_METADATA,
    TOPOLOGY_VERSION,
    ControllerView,
    FeatureUpdate,
    LevelRange,
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
    from assignor.inspection import DescribedMember


class LevelAdmin(Protocol):
    """Access to the levels of a cluster, a group or a feature log."""

    def describe(self) -> Described:
        """Return the finalized and the supported levels."""
        ...

    def survey(self) -> Survey:
        """Return what each member or broker supports."""
        ...

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[LevelResult, ...]:
        """Change all levels or none; return one result per update, in the same order."""
        ...


class ClusterLevelAdmin:
    """The levels of a Kafka cluster; its controller decides about updates.

    Args:
        admin: the connected admin client.
        from_controller: `describe` asks the active controller.
        broker: `describe` asks the broker with this node id; None: any broker.
    """

    def __init__(
        self, admin: "Admin", *, from_controller: bool = False, broker: int | None = None
    ) -> None:
        self._admin, self._from_controller, self._broker = admin, from_controller, broker

    def describe(self) -> Described:
        """Return what one node reports."""
        from assignor.adapters.admin import read_features  # noqa: PLC0415 the client is an extra

        answer = read_features(
            self._admin, broker=self._broker, from_controller=self._from_controller
        )
        return Described(
            source=answer.node,
            table=KAFKA_FEATURES,
            supported=answer.supported,
            finalized=answer.finalized,
        )

    def survey(self) -> Survey:
        """Return what every broker reports."""
        from assignor.adapters.admin import read_all_features  # noqa: PLC0415 as above

        answers = read_all_features(self._admin)
        nodes = tuple(
            NodeSupport(node_id=answer.node.removeprefix("broker "), ranges=answer.supported)
            for answer in answers
        )
        described = Described(
            source=f"the cluster of {len(answers)} brokers",
            table=KAFKA_FEATURES,
            supported=supported_by_all(nodes),
            finalized=newest_levels(answer.finalized for answer in answers),
        )
        return Survey(described=described, nodes=nodes)

    def groups(self) -> list[DescribedGroup]:
        """Return every group of the cluster that the user may describe, without members."""
        from assignor.adapters.admin import list_groups  # noqa: PLC0415 as above

        return list_groups(self._admin)

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[LevelResult, ...]:
        """Send the updates to the controller and return its answers."""
        from assignor.adapters.admin import update_features  # noqa: PLC0415 as above

        levels = self.describe().finalized
        answers = update_features(self._admin, updates, dry_run=dry_run)
        return tuple(
            LevelResult(
                feature=update.feature,
                old=levels.level_of(update.feature),
                new=max(update.level, 0),
                error=answer.error,
                why=answer.why,
            )
            for update, answer in zip(updates, answers, strict=True)
        )


class GroupLevelAdmin:
    """The levels of a group: its topic holds them, its members report what they support.

    Args:
        admin: the connected admin client.
        group: the group id.
    """

    def __init__(self, admin: "Admin", group: str) -> None:
        from assignor.adapters.admin import FeatureTopic  # noqa: PLC0415 as above

        self._admin, self._group = admin, group
        self._topic = FeatureTopic(admin, group)

    def describe(self) -> Described:
        """Return the levels in the group's topic, and what its current members support."""
        return self._described(*members_support(self._members()))

    def _described(self, nodes: Sequence[NodeSupport], notes: tuple[str, ...]) -> Described:
        view = self._topic.look()
        if not nodes:
            notes = (f"group {self._group} has no members; what they support is not known",)
        return Described(
            source=f"group {self._group}, {len(nodes)} members",
            table=NATIVE_FEATURES,
            supported=supported_by_all(nodes),
            finalized=view.state.levels,
            minimums=view.state.minimums,
            notes=(*notes, *view.warnings),
        )

    def survey(self) -> Survey:
        """Return what each member's subscription reports."""
        members = self._members()
        nodes, notes = members_support(members)
        described = self._described(nodes, notes)
        return Survey(described=described, nodes=nodes, versions=written_versions(members))

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[LevelResult, ...]:
        """Decide by the controller's rules and write the result to the topic."""
        nodes, _ = members_support(self._members())
        view = self._topic.look()
        outcome = _decide(view.state, nodes, updates, dry_run=dry_run)
        dropped: tuple[str, ...] = ()
        if outcome.records:
            levels = {record.feature: record.level for record in outcome.records}
            members = {str(node.node_id): node.ranges for node in nodes}
            dropped = self._topic.change(view, levels, _note(), members).dropped
        return _update_results(outcome, dropped)

    def _members(self) -> "tuple[DescribedMember, ...]":
        from assignor.adapters.admin import settled_members  # noqa: PLC0415 as above

        return settled_members(self._admin, self._group)


class DirectoryLevelAdmin:
    """The levels in a feature log directory.

    Args:
        folder: a directory that `assignor storage format` created.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def describe(self) -> Described:
        """Return the levels in the log, without blocking a writer."""
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
        """Return what the registered members support.

        Members are recorded from level 2 of `persistent.metadata.version` on.
        """
        state = look_at_log(FolderDisk(self._folder)).state
        described = self.describe()
        if not state.ranges_by_member:
            warning = (
                f"{described.source} has no registered members; what they support is not known"
            )
            described = replace(described, notes=(*described.notes, warning))
        return Survey(described=described, nodes=_members(state))

    def update(self, updates: Sequence[FeatureUpdate], *, dry_run: bool) -> tuple[LevelResult, ...]:
        """Decide by the controller's rules and write the result to the log."""
        with opened_log(self._folder) as log:
            nodes = (*_members(log.state), _any_application())
            outcome = _decide(log.state, nodes, updates, dry_run=dry_run)
            dropped: tuple[str, ...] = ()
            if outcome.records:
                levels = {record.feature: record.level for record in outcome.records}
                dropped = log.change(levels, _note()).dropped
        return _update_results(outcome, dropped)


def store_failure(error: StoreError, folder: Path) -> click.ClickException:
    """Return the exception that ends a command: status 3 for a disk error, 1 for other errors."""
    kind = ConnectFailure if isinstance(error.__cause__, OSError) else NotAllowed
    where = "" if str(folder) in str(error) else f"{folder}: "
    return kind(f"{where}{error}")


def closing_note(described: Described, updates: Sequence[FeatureUpdate]) -> str:
    """Return a warning if an update makes a rollback impossible (KIP-384); empty otherwise."""
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
    return decision.why if decision.prevents_rollback else ""


def _registered(log: FeatureLog) -> tuple[NodeSupport, ...]:
    """Return the registered members, and this program, which must read the log afterwards."""
    here = NodeSupport(node_id="this program", role=Role.MEMBER, ranges=supported_here())
    return (*_members(log.state), here)


def _any_application() -> NodeSupport:
    """This program as the writer of a log: any version of an application is possible."""
    versions = {TOPOLOGY_VERSION: LevelRange(min=1, max=MAX_LEVEL)}
    return NodeSupport(
        node_id="this program", role=Role.MEMBER, ranges={**supported_here(), **versions}
    )


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
        minimums=state.minimums,
    )
    return decide_update(view, UpdateRequest(updates=tuple(updates), validate_only=dry_run))


def _update_results(outcome: UpdateOutcome, dropped: tuple[str, ...]) -> tuple[LevelResult, ...]:
    return tuple(
        LevelResult(
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
