"""The saved group that `plan --problem` starts from: what `assignor inspect --save` writes.

It has what every member wrote. Several releases may write the same bytes; then the operator names
the release with `--from`, and it is checked against the group.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from assignor import GroupState
from assignor.inspection import few, is_changelog, is_internal
from encoding import shown
from probing import Release, ReleaseError
from system_tests.plan.group import SimulatedGroup, simulated_as_dynamic
from system_tests.plan.saved.fields import SavedFields, checked_fields
from system_tests.plan.saved.member_releases import both_ways, spelled_releases

_SHOWN: Final = 5


def way_back(members: str | None = None, brokers: str | None = None) -> str:
    """Return what to do with a streams group that is to be a classic one again.

    Args:
        members: their release, for the command; None: the operator puts it in.
        brokers: likewise.
    """
    return (
        "To take it back to the classic protocol, stop all members, wait until assignor inspect"
        " shows Empty, for which static members need streams.session.timeout.ms, and start them"
        f" with group.protocol=classic: rolling-bounce plan --from {members or 'RELEASE'} --to"
        f" streams --brokers {brokers or 'RELEASE'} has the cost"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGroup:
    """The part of a saved group that a plan needs.

    Attributes:
        group: the group as the simulator knows it.
        releases_by_client: client -> names of the releases that match what all its threads wrote;
            empty if unknown.
        state: the group as strategies know it.
        is_streams_group: its brokers assign the tasks (KIP-1071).
    """

    group: SimulatedGroup
    releases_by_client: Mapping[str, frozenset[str]]
    state: GroupState
    is_streams_group: bool = False

    def release(self, given: Release | None) -> str:
        """Return the name of the release that the group runs: `given`, else the only match.

        Raises:
            ReleaseError: this is a streams group; or `given` is None and several releases match, or
                members differ; or `given` does not match what members wrote.
        """
        if self.is_streams_group:
            raise ReleaseError(
                "the group is a streams group (KIP-1071), whose brokers assign the tasks: its"
                " members do not write their release; plan a new one with --from RELEASE --brokers"
                f" RELEASE. {way_back()}"
            )
        known = {client: names for client, names in self.releases_by_client.items() if names}
        common = self.common_releases
        if known and not common:
            kinds = {spelled_releases(names): shown(client) for client, names in known.items()}
            listed = [f"{client} has metadata of {kind}" for kind, client in sorted(kinds.items())]
            raise ReleaseError(
                f"members of the group differ: {', '.join(listed[:_SHOWN])};"
                f" {both_ways(known.values())}"
            )
        if given is not None:
            wrong = sorted(client for client, names in known.items() if given.name not in names)
            if wrong:
                raise ReleaseError(
                    f"{', '.join(map(shown, wrong[:_SHOWN]))} of the group do not run"
                    f" {given.name}: their metadata is that of"
                    f" {spelled_releases(known[wrong[0]])}; give that release as --from, or bring"
                    " all members to one release first"
                )
            return given.name
        if len(common) == 1:
            return next(iter(common))
        if common:
            sentence = f"members of the group match {spelled_releases(common)}"
        else:
            sentence = (
                "the file has no metadata of its members (was it saved by assignor inspect --save?)"
            )
        raise ReleaseError(f"{sentence}; name the release that they run with --from")

    @property
    def common_releases(self) -> frozenset[str]:
        """The releases that match what every member wrote; empty if unknown, or if they differ."""
        known = [names for names in self.releases_by_client.values() if names]
        return frozenset.intersection(*known) if known else frozenset()

    def beside(self, longer_groups: Iterable[str]) -> "SavedGroup":
        """Return the group with the names of other groups that begin with its own name and `-`."""
        return replace(self, group=replace(self.group, longer_groups=tuple(longer_groups)))

    def unchecked(self, release: str) -> str:
        """Return which members the file does not show to run a release, and why; often empty."""
        unknown = sorted(client for client, names in self.releases_by_client.items() if not names)
        if not unknown or self.is_streams_group:
            return ""
        return (
            f"whether all members run {release}: the file has no versions of {len(unknown)} of"
            f" {len(self.releases_by_client)} members, such as {shown(unknown[0])}; save the group"
            " with assignor inspect --save while they run"
        )


def saved_group(data: Mapping[str, Any]) -> SavedGroup:
    """Return the part of a group that a plan needs.

    Args:
        data: as `assignor inspect --save` writes it.

    Raises:
        RebalanceError: as `checked_fields` does.
    """
    return group_of(checked_fields(data))


def group_of(fields: SavedFields) -> SavedGroup:
    """Return the part of a group that a plan needs."""
    return SavedGroup(
        group=_simulated(fields),
        releases_by_client={client.name: client.releases for client in fields.clients},
        state=fields.problem.state,
        is_streams_group=fields.is_streams_group,
    )


def _simulated(fields: SavedFields) -> SimulatedGroup:
    """Return a group with the members, threads, tasks, copies and state sizes of a real one."""
    state, records = fields.problem.state, fields.records
    members, threads = len(state.clients), state.threads.tolist()
    static_members = sum(client.is_static for client in fields.clients)
    has_states = state.stateful.tolist()
    stateful = [t for t, has_state in zip(state.tasks, has_states, strict=True) if has_state]
    unknown = [task for task in stateful if str(task) not in records]
    is_known = bool(records) or not stateful
    inputs, repartition, internal = _topics_of_plan(fields)
    notes: list[str] = []
    if fields.loose:
        notes.append(_unattributed(fields.loose))
    if unknown:
        instead = "count as none" if is_known else "are assumed"
        notes.append(f"the sizes of the state of {len(unknown)} tasks are not known and {instead}")
    if len(set(threads)) > 1:
        notes.append("members have different numbers of threads; each is simulated with the mean")
    if 0 < static_members < members:
        notes.append(simulated_as_dynamic(static_members, members))
    return SimulatedGroup(
        name=fields.problem.name,
        members=members,
        threads=max(1, round(sum(threads) / members)),
        partitions=max(1, len(state.tasks)),
        sizes=tuple(
            records.get(str(task), 0) if has_state else 0
            for task, has_state in zip(state.tasks, has_states, strict=True)
        )
        if is_known
        else (),
        tasks=tuple(map(str, state.tasks)),
        stateful=tuple(has_states),
        standbys=state.config.num_standby_replicas,
        static_members=static_members,
        is_static=0 < static_members == members,
        has_more_state=bool(fields.loose),
        notes=tuple(notes),
        is_real=True,
        input_topics=inputs,
        repartition_topics=repartition,
        internal_topics=internal,
        subtopologies=0 if fields.loose else len({*fields.sources, *state.subtopology.tolist()}),
    )


def _topics_of_plan(fields: SavedFields) -> tuple[tuple[str, ...], ...]:
    """Return input topics, repartition topics, all internal topics.

    There are none if the file has placeholders for some of them.
    """
    name = fields.problem.name
    read = {topic for topics in fields.sources.values() for topic in topics}
    logs = {*fields.loose, *(topic for topics in fields.changelogs.values() for topic in topics)}
    if any(topic.startswith(f"{name}-subtopology-") for topic in read | logs):
        return (), (), ()
    own = {topic for topic in read if is_internal(topic, name) and not is_changelog(topic)}
    kept = {topic for topic in logs - read if is_internal(topic, name)}
    return tuple(sorted(read - own)), tuple(sorted(own)), tuple(sorted(own | kept))


def _unattributed(changelogs: Mapping[str, int | None]) -> str:
    """Return what a plan says of changelogs whose tasks are not known."""
    known = [records for records in changelogs.values() if records is not None]
    size = f" ({sum(known):,} records)" if len(known) == len(changelogs) else ""
    return (
        f"the group has the changelogs {few(sorted(changelogs))}{size}, and the file does not say"
        " of which tasks: their restore is not in the costs"
    )
