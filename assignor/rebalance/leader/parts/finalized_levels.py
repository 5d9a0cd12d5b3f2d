"""Finalized levels inside a group: those that members report, and members that lack them.

The newest levels that any member knows hold (KIP-584): they travel in the members' own bytes, so
that a leader with late or stale information is corrected.
"""

from collections.abc import Mapping, Sequence

from assignor.rebalance.leader.members import ReadMember
from assignor.rebalance.leader.parts.absent import GroupLevels
from assignor.rebalance.level_reports import reported_levels
from encoding import NativeSubscription, shown
from probing import protocol_level
from probing.features import (
    PERSISTENT_METADATA,
    TOPOLOGY_VERSION,
    UNKNOWN_LEVELS,
    FinalizedLevels,
    group_levels,
)
from probing.persisted_formats import PERSISTENT_VERSIONS

_LISTED = 3


def levels_answered(levels: FinalizedLevels, persistent_version: int) -> Mapping[str, int]:
    """Levels for an answer: the finalized ones, else what the leader itself writes (KIP-384).

    Without finalized levels the epoch is -1: members that know none adopt none. The lowest
    persistent version is left out: every member writes it anyway.
    """
    says_own = levels == UNKNOWN_LEVELS and persistent_version > PERSISTENT_VERSIONS[0]
    return {PERSISTENT_METADATA: persistent_version} if says_own else levels.levels


def agree_levels(
    known: FinalizedLevels, persistent_version: int, members: Sequence[ReadMember]
) -> GroupLevels:
    """Return what finalized levels mean in a group with a native leader.

    Args:
        known: the newest levels that the leader knows.
        persistent_version: of the leader's own stores (KIP-384); 0: it has none.
        members: every member of the generation.
    """
    levels, warnings = levels_of_group(members, known)
    return GroupLevels(
        protocol=protocol_level(levels),
        topology=levels.level_of(TOPOLOGY_VERSION) or None,
        lacking=lacking_members(members, levels),
        warnings=warnings,
        answer_fields={
            "feature_levels": levels_answered(levels, persistent_version),
            "feature_epoch": levels.epoch,
        },
    )


def levels_of_group(
    members: Sequence[ReadMember], known: FinalizedLevels
) -> tuple[FinalizedLevels, tuple[str, ...]]:
    """Return the levels that hold in the group from now on, and warnings about doubted reports.

    The newest levels win, whichever member reports them (KIP-584). Levels newer than the leader's
    that only members of a single process report hold only if every member supports them, so that
    one process cannot make the others wait.

    Args:
        members: every member of the generation.
        known: the newest levels that the leader knows.
    """
    natives = _natives(members)
    client_of = {member.id: member.client for member in members}
    named: dict[FinalizedLevels, list[str]] = {}
    for member, native in natives.items():
        levels = reported_levels(native.adopted_levels, native.adopted_epoch)
        is_invalid = levels == UNKNOWN_LEVELS and bool(native.adopted_levels)
        if is_invalid or levels.epoch > known.epoch:
            named.setdefault(levels, []).append(member)
    doubted, believed = named.pop(UNKNOWN_LEVELS, []), []
    for levels, naming in named.items():
        has_second = len({client_of[member] for member in naming}) > 1
        if has_second or not any(_lacks(native, levels) for native in natives.values()):
            believed.append(levels)
        else:
            doubted += naming
    warnings = [_doubt(member, natives[member]) for member in sorted(doubted)]
    newest = group_levels(known, believed)
    if known != UNKNOWN_LEVELS and newest.levels != known.levels and len(named[newest]) == 1:
        warnings.append(_changed(named[newest][0], known, newest))
    return newest, tuple(warnings)


def _changed(member: str, known: FinalizedLevels, newest: FinalizedLevels) -> str:
    before, after = (
        ", ".join(f"{shown(name)}={level}" for name, level in sorted(levels.levels.items()))
        or "none"
        for levels in (known, newest)
    )
    return (
        f"member {shown(member)} alone reports finalized levels of epoch {newest.epoch}, and the"
        f" group adopts them: {before} becomes {after}; if that is wrong, stop that member and"
        " restart the others together"
    )


def _doubt(member: str, native: NativeSubscription) -> str:
    features = ", ".join(map(shown, sorted(native.adopted_levels)[:_LISTED]))
    return (
        f"member {shown(member)} alone reports finalized levels of epoch"
        f" {native.adopted_epoch} ({features}):"
        " they are ignored; if they are right, let a second process or the leader learn them"
    )


def lacking_members(members: Sequence[ReadMember], levels: FinalizedLevels) -> dict[str, str]:
    """Member id -> why it does not support the levels: it gets them, no tasks, and leaves."""
    found = {member: _lacks(native, levels) for member, native in _natives(members).items()}
    return {member: why for member, why in found.items() if why}


def _natives(members: Sequence[ReadMember]) -> dict[str, NativeSubscription]:
    """Native fields by member id, sorted."""
    natives = {member.id: member.native for member in members if member.native is not None}
    return dict(sorted(natives.items()))


def _lacks(native: NativeSubscription, levels: FinalizedLevels) -> str:
    if not native.is_readable:
        return ""
    for feature, level in sorted(levels.levels.items()):
        # A program that names no versions of its topology runs version 1.
        missing = (1, 1) if feature == TOPOLOGY_VERSION else (0, 0)
        lowest, highest = native.feature_ranges.get(feature, missing)
        if not lowest <= level <= highest:
            supported = f"{lowest} to {highest}" if highest else "nothing of it"
            return f"{shown(feature)} is finalized at {level}, and it supports {supported}"
    return ""
