"""Finalized levels inside a group: what members say of them, and who cannot go by them.

The newest levels that anybody knows count (KIP-584): they travel in the members' own bytes, so that
a leader that was told late, or by a stale broker, is corrected.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from assignor.rebalance.leader.subscriptions import ReadMember
from encoding import NativeSubscription, shown
from probing import Content, LeaderDecision, Release, member_ranges
from probing.features import (
    PERSISTENT_METADATA,
    UNKNOWN_LEVELS,
    FeatureError,
    FinalizedLevels,
    group_levels,
)
from probing.persisted_formats import PERSISTENT_VERSIONS

_LISTED = 3
LONGEST_NAME = 255
MOST_FEATURES = 100
HIGHEST_EPOCH = 2**62


def levels_said(levels: Mapping[str, int], epoch: int) -> FinalizedLevels:
    """The levels that a peer names; what cannot be, counts as not said."""
    if epoch >= HIGHEST_EPOCH or len(levels) > MOST_FEATURES:
        return UNKNOWN_LEVELS
    if any(len(name) > LONGEST_NAME for name in levels):
        return UNKNOWN_LEVELS
    try:
        return FinalizedLevels(levels=levels, epoch=epoch)
    except FeatureError:
        return UNKNOWN_LEVELS


def levels_answered(levels: FinalizedLevels, persistent_version: int) -> Mapping[str, int]:
    """Levels for an answer: the finalized ones, else what the leader itself writes (KIP-384).

    Without finalized levels the epoch is -1: who does not know better takes that for no levels. The
    lowest persistent version is what everybody writes anyway and is not said.
    """
    says_own = levels == UNKNOWN_LEVELS and persistent_version > PERSISTENT_VERSIONS[0]
    return {PERSISTENT_METADATA: persistent_version} if says_own else levels.levels


@lru_cache(maxsize=64)
def supported_ranges(versions: tuple[int, ...]) -> Mapping[str, tuple[int, int]]:
    """(lowest, highest) level by feature of a member that reads and writes these versions."""
    return {name: (row.min, row.max) for name, row in member_ranges(versions).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLevels:
    """The levels that the group goes by from now on.

    Attributes:
        levels: the newest that are believed.
        warnings: who names newer ones that are not.
    """

    levels: FinalizedLevels
    warnings: tuple[str, ...] = ()


def levels_of_group(
    release: Release, read: Sequence[ReadMember], known: FinalizedLevels
) -> GroupLevels:
    """The levels that a leader of ours answers with; a JVM leader knows nothing of them.

    Levels that the members of one process alone name, newer than what the leader knows, count only
    if every member supports them: so nobody waits for what one process says. That the newest levels
    win, whoever knows them, is what KIP-584 asks for.

    Args:
        release: the leader's.
        read: every member of the generation.
        known: the newest levels that the leader has heard of.
    """
    if not release.is_native:
        return GroupLevels(levels=UNKNOWN_LEVELS)
    natives = _natives(read)
    client_of = {one.member.member_id: one.client for one in read}
    named: dict[FinalizedLevels, list[str]] = {}
    for member, native in natives.items():
        levels = levels_said(native.adopted_levels, native.adopted_epoch)
        is_invalid = levels == UNKNOWN_LEVELS and bool(native.adopted_levels)
        if is_invalid or levels.epoch > known.epoch:
            named.setdefault(levels, []).append(member)
    doubted, believed = named.pop(UNKNOWN_LEVELS, []), []
    for levels, members in named.items():
        has_second = len({client_of[member] for member in members}) > 1
        if has_second or not any(_lacks(native, levels) for native in natives.values()):
            believed.append(levels)
        else:
            doubted += members
    warnings = [_doubt(member, natives[member]) for member in sorted(doubted)]
    newest = group_levels(known, believed)
    if known != UNKNOWN_LEVELS and newest.levels != known.levels and len(named[newest]) == 1:
        warnings.append(_changed(named[newest][0], known, newest))
    return GroupLevels(levels=newest, warnings=tuple(warnings))


def _changed(member: str, known: FinalizedLevels, newest: FinalizedLevels) -> str:
    before, after = (
        ", ".join(f"{shown(name)}={level}" for name, level in sorted(one.levels.items())) or "none"
        for one in (known, newest)
    )
    return (
        f"member {shown(member)} alone names finalized levels of epoch {newest.epoch}, and the"
        f" group goes by them: {before} becomes {after}; if that is wrong, stop that member and"
        " restart the others together"
    )


def _doubt(member: str, native: NativeSubscription) -> str:
    features = ", ".join(map(shown, sorted(native.adopted_levels)[:_LISTED]))
    return (
        f"member {shown(member)} alone names finalized levels of epoch"
        f" {native.adopted_epoch} ({features}):"
        " they are ignored; if they are right, let a second process or the leader learn them"
    )


def lacking_members(read: Sequence[ReadMember], levels: FinalizedLevels) -> dict[str, str]:
    """Member id -> why it cannot go by the levels: it is told them, and leaves by itself."""
    found = {member: _lacks(native, levels) for member, native in _natives(read).items()}
    return {member: why for member, why in found.items() if why}


def without_tasks(decision: LeaderDecision, members: Collection[str]) -> LeaderDecision:
    """The decision with nothing but numbers and levels for these members."""
    if not members:
        return decision
    answers = (
        replace(one, content=Content.EMPTY) if one.member_id in members else one
        for one in decision.answers
    )
    return replace(decision, answers=tuple(answers))


def _natives(read: Sequence[ReadMember]) -> dict[str, NativeSubscription]:
    """What members of ours say, by member id, sorted."""
    natives = {one.member.member_id: one.native for one in read if one.native is not None}
    return dict(sorted(natives.items()))


def _lacks(native: NativeSubscription, levels: FinalizedLevels) -> str:
    if not native.is_readable:
        return ""
    for feature, level in sorted(levels.levels.items()):
        lowest, highest = native.feature_ranges.get(feature, (0, 0))
        if not lowest <= level <= highest:
            supported = f"{lowest} to {highest}" if highest else "nothing of it"
            return f"{shown(feature)} is finalized at {level}, and it supports {supported}"
    return ""
