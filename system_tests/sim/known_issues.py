"""Known Kafka issues, and the groups that have them: rows, looked up before releases are drawn.

A row changes no simulation. Groups that match one are not drawn, and a failure in a group that was
asked for names the issue.
"""

from collections.abc import Callable
from dataclasses import dataclass

from probing import LeaderModel, Release, UpgradePath, upgrade_path
from probing.upgrades import formats_between, former_answer_is_unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A group that is to be bounced.

    Attributes:
        old, new: releases.
        threads: in each process; static: members carry instance ids.
        faults: what may go wrong.
        offline: members of both releases are never in the group at the same time.
        waits: a static member whose former answer the new release may not be able to read is
            started after its session has expired.
    """

    old: Release
    new: Release
    threads: int
    static: bool
    faults: frozenset[str]
    offline: bool
    waits: bool = False

    def has_open(self, issue: str) -> bool:
        """Whether the issue is open in one of the releases."""
        return issue in self.old.open_issues or issue in self.new.open_issues

    @property
    def lower(self) -> Release:
        """The earlier release."""
        return min(self.old, self.new, key=lambda release: release.order)

    @property
    def higher(self) -> Release:
        """The later release."""
        return max(self.old, self.new, key=lambda release: release.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One row: the issue, the groups that can have it, and a sentence."""

    issue: str
    matches: Callable[[Shape], bool]
    why: str


_PATHS: dict[tuple[str, str], UpgradePath] = {}
"""Paths between programs that were asked about; the release table does not change."""


def path_between(old: Release, new: Release) -> UpgradePath:
    """Return `probing.upgrade_path` of two releases, computed once for each pair of names."""
    names = (old.name, new.name)
    path = _PATHS.get(names)
    if path is None:
        path = _PATHS[names] = upgrade_path(old, new)
    return path


_RESTARTS = frozenset({"crash", "leader", "coordinator"})

KNOWN: tuple[Known, ...] = (
    Known(
        issue="no path",
        matches=lambda s: not s.offline and not path_between(s.old, s.new).possible,
        why="the release table has no rolling path between the two",
    ),
    Known(
        issue="static rollback",
        matches=lambda s: (
            s.static and not (s.offline or s.waits) and former_answer_is_unreadable(s.old, s.new)
        ),
        why="a static member is handed the answer of its former self, which may be in a version"
        " that the older program cannot read",
    ),
    Known(
        issue="repeated tasks",
        matches=lambda s: (
            s.threads > 1
            and not s.offline
            and s.lower.leader_model is LeaderModel.EMPTY_AND_OWN
            and s.higher.latest_version > s.lower.latest_version
            and (s.old is s.lower or bool(s.faults & _RESTARTS))
        ),
        why="the leader gives every thread all tasks that its process had before",
    ),
    Known(
        issue="KAFKA-14382",
        matches=lambda s: bool(s.faults) and s.has_open("KAFKA-14382"),
        why="a follow-up fires while a rebalance is running, a slow member misses the answer",
    ),
    Known(
        issue="KAFKA-9525",
        matches=lambda s: (
            s.static
            and not s.offline
            and "KAFKA-9525" in s.new.open_issues
            and s.new.latest_version > s.old.latest_version
        ),
        why="a static member that asks for a rebalance is handed its old answer instead, and stays"
        " in a version that others cannot read",
    ),
    Known(
        issue="KAFKA-9821",
        matches=lambda s: s.static and bool(s.faults & _RESTARTS) and s.has_open("KAFKA-9821"),
        why="the member that gives partitions up alone knows that a follow-up is due, and forgets"
        " it when it is restarted",
    ),
    Known(
        issue="fenced by a failover",
        matches=lambda s: s.static and "coordinator" in s.faults,
        why="the new coordinator knows the member id from before the last restart of a static"
        " member, and fences the present one",
    ),
    Known(
        issue="KAFKA-10455",
        matches=lambda s: s.static and bool(s.faults) and s.has_open("KAFKA-10455"),
        why="a rejoin with the same bytes is ignored by the coordinator",
    ),
)
"""In the order in which they are asked; several may hold."""


def not_modelled(old: Release, new: Release) -> tuple[str, ...]:
    """Return what a simulated group does not have and `plan` knows of, each as a sentence."""
    found = [
        f"{row.name}: members of a simulated group do not write them; for an application that uses"
        f" them see rolling-bounce plan --uses {row.use}"
        for row in formats_between(old, new)
    ]
    lower, higher = sorted((old, new), key=lambda release: release.order)
    is_newer = higher.latest_version > lower.latest_version
    if lower.leader_model is LeaderModel.EMPTY_AND_OWN and is_newer:
        found.append(
            "more than one subtopology: a simulated group has one; with more, members of"
            f" {lower.name} can end on this way, see rolling-bounce plan"
        )
    return tuple(found)


def known_issues(shape: Shape) -> tuple[str, ...]:
    """Return the ids of the known issues of such a group."""
    return tuple(row.issue for row in KNOWN if row.matches(shape))
