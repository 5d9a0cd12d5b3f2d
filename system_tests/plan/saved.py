"""The saved group that `plan --problem` starts from: a file of `assignor inspect --save`.

The file holds what every member wrote. Several releases may write the same bytes; then the operator
names the release with `--from`, and it is checked against the file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from assignor import GroupState, read_problem
from assignor.problems import (
    INSTANCES_KEY,
    PROTOCOL_KEY,
    TOPOLOGY_VERSION_KEY,
    UNATTRIBUTED_KEY,
    Problem,
    ProblemError,
    parse_problem,
    quoted,
)
from assignor.topology import HIGHEST_VERSION, RepartitionTopic, Subtopology
from encoding import RebalanceError, shown
from probing import Release, ReleaseError
from system_tests.plan.group import SimulatedGroup, simulated_as_dynamic
from system_tests.plan.member_releases import both_ways, client_releases, spelled_releases
from system_tests.plan.topologies import PlannedTopology

_FILE_LIMIT: Final = 512 * 1024 * 1024
_SHOWN: Final = 5
WAY_BACK: Final = (
    "To take it back to the classic protocol, stop all members, wait until assignor inspect shows"
    " Empty, and start them with group.protocol=classic: rolling-bounce plan --from 4.3 --to"
    " streams --brokers 4.3 has the cost"
)
"""What an operator does with a streams group that is to be a classic one again."""
MOST_RECORDS: Final = 10**13
"""Records of the changelogs of one task: years of restoring. A larger number is an error."""


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
                f" RELEASE. {WAY_BACK}"
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


def read_saved(path: Path) -> SavedGroup:
    """Read a problem file that `assignor inspect --save` wrote.

    Raises:
        ProblemError: the file cannot be read, is too large, or is not a problem file.
    """
    return saved_group(*_read(path))


def saved_group(data: Mapping[str, Any], problem: Problem) -> SavedGroup:
    """Return the part of a group that a plan needs.

    Args:
        data: as `assignor inspect --save` writes it.
        problem: the same, read.
    """
    return SavedGroup(
        group=_with_instances(
            replace(
                _simulated(problem, data.get("end_offset_sums") or {}),
                **_topics_of_plan(problem.name, data.get("subtopologies")),
            ),
            data["clients"].values(),
        ),
        releases_by_client={
            str(client.get("client", process)): client_releases(
                str(client.get("client", process)), client
            )
            for process, client in sorted(data["clients"].items())
        },
        state=problem.state,
        is_streams_group=_is_streams_group(problem),
    )


def _simulated(problem: Problem, records: Mapping[str, int]) -> SimulatedGroup:
    """Return a group with the members, threads, tasks, copies and state sizes of a real one."""
    state = problem.state
    members, threads = len(state.clients), state.threads.tolist()
    _check_sizes(records)
    has_states = state.stateful.tolist()
    stateful = [t for t, has_state in zip(state.tasks, has_states, strict=True) if has_state]
    unknown = [task for task in stateful if str(task) not in records]
    is_known = bool(records) or not stateful
    notes: list[str] = []
    loose = _unattributed_changelogs(problem.data)
    if loose:
        notes.append(_unattributed(loose))
    if unknown:
        instead = "count as none" if is_known else "are assumed"
        notes.append(f"the sizes of the state of {len(unknown)} tasks are not known and {instead}")
    if len(set(threads)) > 1:
        notes.append("members have different numbers of threads; each is simulated with the mean")
    return SimulatedGroup(
        name=problem.name,
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
        has_more_state=bool(loose),
        notes=tuple(notes),
        is_real=True,
    )


def _topics_of_plan(name: str, rows: Any) -> dict[str, Any]:
    """Return input topics and repartition topics, as far as a file has valid ones."""
    parts = rows.values() if isinstance(rows, dict) else ()
    lists = (part.get("sources") for part in parts if isinstance(part, dict))
    found = sorted({str(topic) for topics in lists if isinstance(topics, list) for topic in topics})
    if any(topic.startswith(f"{name}-subtopology-") for topic in found):
        return {}  # placeholders of a group whose topics are not known
    own = {t for t in found if t.startswith(f"{name}-") and t.endswith("-repartition")}
    inputs = tuple(topic for topic in found if topic not in own)
    return {"repartition_topics": tuple(sorted(own)), "input_topics": inputs}


def _unattributed_changelogs(data: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the changelogs whose tasks a file does not know, and their records if known.

    Raises:
        ProblemError: they are not an object of numbers.
    """
    found = data.get(UNATTRIBUTED_KEY) or {}
    values = found.values() if isinstance(found, dict) else (found,)
    if not all(value is None or (type(value) is int and value >= 0) for value in values):
        raise ProblemError(
            f"{UNATTRIBUTED_KEY} is {quoted(found)}; give an object of topics and their records"
        )
    return dict(found)


def _unattributed(changelogs: Mapping[str, int | None]) -> str:
    """Return what a plan says of changelogs whose tasks are not known."""
    names = ", ".join(map(shown, sorted(changelogs)[:_SHOWN]))
    more = f" and {len(changelogs) - _SHOWN} more" if len(changelogs) > _SHOWN else ""
    known = [records for records in changelogs.values() if records is not None]
    size = f" ({sum(known):,} records)" if len(known) == len(changelogs) else ""
    return (
        f"the group has the changelogs {names}{more}{size}, and the file does not say of which"
        " tasks: their restore is not in the costs"
    )


def _with_instances(group: SimulatedGroup, clients: Iterable[Mapping[str, Any]]) -> SimulatedGroup:
    """Return the group with what its file says about static members."""
    known = sum(bool(client.get(INSTANCES_KEY)) for client in clients)
    notes = list(group.notes)
    if 0 < known < group.members:
        notes.append(simulated_as_dynamic(known, group.members))
    return replace(
        group,
        static_members=known,
        is_static=0 < known == group.members,
        notes=tuple(notes),
    )


def _check_sizes(records: Mapping[str, int]) -> None:
    """Check that state can be restored within years.

    Raises:
        ProblemError: a task has more than `MOST_RECORDS` records.
    """
    for task, size in records.items():
        if size > MOST_RECORDS:
            raise ProblemError(
                f"end_offset_sums of task {task} is {size:,} records; plan takes up to"
                f" {MOST_RECORDS:,} for each task: correct the file"
            )


def _is_streams_group(problem: Problem) -> bool:
    """Whether a saved group is a streams group (KIP-1071) already."""
    return problem.data.get(PROTOCOL_KEY) == "streams"


def read_saved_topology(path: Path) -> tuple[str, PlannedTopology]:
    """Return the name of a saved group, and its topology as far as `inspect` knew it.

    Raises:
        ProblemError: as `read_saved` does; or the group has no name, or an impossible topology.
    """
    data, problem = _read(path)
    name = problem.name
    if not name:
        raise ProblemError(
            f"{path} has no name, which is the prefix of internal topics; add the group id"
        )
    parts = tuple(_subtopologies(path, name, data.get("subtopologies", {})))
    return name, PlannedTopology(
        subtopologies=parts,
        version=_version(path, data.get(TOPOLOGY_VERSION_KEY, 1)),
        placeholders=tuple(
            topic
            for part in parts
            for topic in (*part.source_topics, *part.changelog_topics)
            if topic.startswith(f"{name}-subtopology-{part.id}-")
        ),
        is_saved=True,
    )


def _read(path: Path) -> tuple[dict[str, Any], Problem]:
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(raw) > _FILE_LIMIT:
        raise ProblemError(f"{path} has more than {_FILE_LIMIT} bytes; this is not a saved group")
    try:
        data = parse_problem(raw)
        problem = read_problem(data)
        _check_sizes(data.get("end_offset_sums") or {})
    except RebalanceError as error:
        raise ProblemError(f"{path}: {error}") from None
    return data, problem


def _subtopologies(path: Path, name: str, rows: Mapping[str, Any]) -> Iterator[Subtopology]:
    owners: dict[str, str] = {}
    if not isinstance(rows, dict) or not all(number.isdecimal() for number in rows):
        raise ProblemError(f"{path}: subtopologies is {quoted(rows)}; give an object of numbers")
    for number in sorted(rows, key=int):
        sources, changelogs = (
            _topics(path, rows, number, key) for key in ("sources", "changelogs")
        )
        for topic in (*sources, *changelogs):
            if owners.setdefault(topic, number) != number:
                raise ProblemError(
                    f"{path}: {shown(topic)} is a topic of subtopologies {owners[topic]} and"
                    f" {number}; each belongs to one"
                )
        yield Subtopology(
            id=int(number),
            nodes=(),
            source_topics=sources,
            repartition_topics=tuple(
                RepartitionTopic(name=topic, partitions=None)
                for topic in sources
                if topic.startswith(f"{name}-") and topic.endswith("-repartition")
            ),
            changelog_topics=changelogs,
        )


def _topics(path: Path, rows: Mapping[str, Any], number: str, key: str) -> tuple[str, ...]:
    found = rows[number].get(key, []) if isinstance(rows[number], dict) else None
    if not isinstance(found, list) or not all(isinstance(topic, str) for topic in found):
        raise ProblemError(f"{path}: subtopology {number} has {key} that are no list of topics")
    return tuple(sorted(set(found)))


def _version(path: Path, value: Any) -> int:
    if type(value) is int and 1 <= value <= HIGHEST_VERSION:
        return value
    what = f"{TOPOLOGY_VERSION_KEY} is {quoted(value)}"
    raise ProblemError(f"{path}: {what}; give a number from 1 to {HIGHEST_VERSION}")
