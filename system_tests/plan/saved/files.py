"""Files of `assignor inspect --save`: the group, or the topology, of one of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from assignor.inspection import is_changelog, is_internal
from assignor.problems import ProblemError, parse_problem
from assignor.topology import RepartitionTopic, Subtopology
from encoding import RebalanceError, shown
from system_tests.plan.saved.fields import SavedFields, checked_fields
from system_tests.plan.saved.group import SavedGroup, group_of
from system_tests.plan.topologies import PlannedTopology

_FILE_LIMIT: Final = 512 * 1024 * 1024


def read_saved(path: Path) -> SavedGroup:
    """Read a problem file that `assignor inspect --save` wrote.

    Raises:
        ProblemError: the file cannot be read, is too large, or is not a problem file.
    """
    return group_of(_read(path))


def read_saved_topology(path: Path) -> tuple[str, PlannedTopology]:
    """Return the name of a saved group, and its topology as far as `inspect` knew it.

    Raises:
        ProblemError: as `read_saved` does; or the group has no name, or an impossible topology.
    """
    fields = _read(path)
    name = fields.problem.name
    if not name:
        raise ProblemError(
            f"{path} has no name, which is the prefix of internal topics; add the group id"
        )
    parts = tuple(_subtopologies(path, name, fields))
    return name, PlannedTopology(
        subtopologies=parts,
        version=fields.topology_version,
        placeholders=tuple(
            topic
            for part in parts
            for topic in (*part.source_topics, *part.changelog_topics)
            if topic.startswith(f"{name}-subtopology-{part.id}-")
        ),
        is_saved=True,
    )


def _read(path: Path) -> SavedFields:
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(raw) > _FILE_LIMIT:
        raise ProblemError(f"{path} has more than {_FILE_LIMIT} bytes; this is not a saved group")
    try:
        return checked_fields(parse_problem(raw))
    except RebalanceError as error:
        raise ProblemError(f"{path}: {error}") from None


def _subtopologies(path: Path, name: str, fields: SavedFields) -> Iterator[Subtopology]:
    owners: dict[str, int] = {}
    for number, sources in sorted(fields.sources.items()):
        changelogs = fields.changelogs[number]
        for topic in (*sources, *changelogs):
            if owners.setdefault(topic, number) != number:
                raise ProblemError(
                    f"{path}: {shown(topic)} is a topic of subtopologies {owners[topic]} and"
                    f" {number}; each belongs to one"
                )
        yield Subtopology(
            id=number,
            nodes=(),
            source_topics=sources,
            repartition_topics=tuple(
                RepartitionTopic(name=topic, partitions=None)
                for topic in sources
                if is_internal(topic, name) and not is_changelog(topic)
            ),
            changelog_topics=changelogs,
        )
