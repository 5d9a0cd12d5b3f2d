"""The placement of a generation: who gets what, by member id."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from assignor.rebalance.leader.members import ReadMember
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES, StrategyFailures
from encoding import TaskId, TopicPartition, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The tasks of each member, by member id, and what the leader remembers of them.

    Attributes:
        active_by_member, standby_by_member: tasks; a missing member gets none.
        warmup_by_member: those of the standby tasks that only warm up (KIP-441).
        partitions_by_member: partitions that a quarantined member keeps, without tasks.
        endpoint_by_member: `host:port` of members that serve queries.
        next_rebalance_ms: member id -> epoch time at which it asks for the next rebalance.
        withheld_by_member: partitions that a member waits for until their owners revoke them.
        unassigned: tasks that no member gets now, as another one still owns their partitions.
        warnings: for the operator.
        transient, lags, lags_at_ms, failures, stalled: see `GroupAnswer`.
    """

    active_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    standby_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    warmup_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    endpoint_by_member: Mapping[str, str] = field(default_factory=dict)
    next_rebalance_ms: Mapping[str, int] = field(default_factory=dict)
    withheld_by_member: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    unassigned: frozenset[TaskId] = frozenset()
    warnings: tuple[str, ...] = ()
    transient: frozenset[str] = frozenset()
    lags: Mapping[str, Mapping[TaskId, int]] = field(default_factory=dict)
    lags_at_ms: int = 0
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED


_OF_COORDINATOR: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What the coordinator adds to a client id, or to an instance id, in a member id."""


def with_client_ids(placement: Placement, members: Sequence[ReadMember]) -> Placement:
    """Return the placement with warnings that name processes by client id and process id.

    Operators know client ids; strategies know process ids only.
    """
    if not placement.warnings:
        return placement
    names: dict[str, str] = {}
    for member in members:
        client_id = shown(_OF_COORDINATOR.sub("", member.id))
        names.setdefault(member.client, f"{client_id} ({member.client})")
    pattern = re.compile("|".join(map(re.escape, names)))

    def named(warning: str) -> str:
        return pattern.sub(lambda found: names[found[0]], warning)

    return replace(
        placement,
        warnings=tuple(map(named, placement.warnings)),
        transient=frozenset(map(named, placement.transient)),
    )


def merged_placements(placements: Sequence[Placement]) -> Placement:
    """Return the placements of disjoint tasks as one."""
    if not placements:
        return Placement()
    active: dict[str, tuple[TaskId, ...]] = {}
    standby: dict[str, tuple[TaskId, ...]] = {}
    warmup: dict[str, tuple[TaskId, ...]] = {}
    partitions: dict[str, tuple[TopicPartition, ...]] = {}
    next_ms: dict[str, int] = {}
    lags: dict[str, dict[TaskId, int]] = {}
    for each in placements:
        for found, given in (
            (active, each.active_by_member),
            (standby, each.standby_by_member),
            (warmup, each.warmup_by_member),
        ):
            for member, tasks in given.items():
                found[member] = tuple(sorted({*found.get(member, ()), *tasks}))
        for member, owned in each.partitions_by_member.items():
            partitions[member] = tuple(sorted({*partitions.get(member, ()), *owned}))
        for member, at_ms in each.next_rebalance_ms.items():
            next_ms[member] = min(at_ms, next_ms.get(member, at_ms))
        for process, by_task in each.lags.items():
            lags.setdefault(process, {}).update(by_task)
    return Placement(
        active_by_member=active,
        standby_by_member=standby,
        warmup_by_member=warmup,
        partitions_by_member=partitions,
        next_rebalance_ms=next_ms,
        unassigned=frozenset().union(*(each.unassigned for each in placements)),
        warnings=tuple(dict.fromkeys(w for each in placements for w in each.warnings)),
        transient=frozenset().union(*(each.transient for each in placements)),
        lags=lags,
        lags_at_ms=max(each.lags_at_ms for each in placements),
        failures=max((each.failures for each in placements), key=lambda f: f.count),
        stalled=max((each.stalled for each in placements), key=lambda s: s.looks),
    )
