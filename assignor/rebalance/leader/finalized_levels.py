"""Finalized levels inside a group: what members say of them, and who cannot go by them.

The newest levels that anybody knows count (KIP-584): they travel in the members' own bytes, so that
a leader that was told late, or by a stale broker, is corrected.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from assignor.rebalance.leader.subscriptions import ReadMember
from encoding import NativeSubscription
from probing import Content, LeaderDecision, Release, member_ranges
from probing.features import UNKNOWN_LEVELS, FeatureError, FinalizedLevels, group_levels


def levels_said(levels: Mapping[str, int], epoch: int) -> FinalizedLevels:
    """The levels that a peer names; what cannot be, counts as not said."""
    try:
        return FinalizedLevels(levels=levels, epoch=epoch)
    except FeatureError:
        return UNKNOWN_LEVELS


@lru_cache(maxsize=64)
def supported_ranges(versions: tuple[int, ...]) -> Mapping[str, tuple[int, int]]:
    """(lowest, highest) level by feature of a member that reads and writes these versions."""
    return {name: (row.min, row.max) for name, row in member_ranges(versions).items()}


def levels_of_group(
    release: Release, read: Sequence[ReadMember], known: FinalizedLevels
) -> FinalizedLevels:
    """The levels that a leader of ours answers with; a JVM leader knows nothing of them.

    Args:
        release: the leader's.
        read: every member of the generation.
        known: the newest levels that the leader has heard of.
    """
    if not release.is_native:
        return UNKNOWN_LEVELS
    natives = [one.native for one in read if one.native is not None]
    return group_levels(known, [levels_said(n.adopted_levels, n.adopted_epoch) for n in natives])


def lacking_members(read: Sequence[ReadMember], levels: FinalizedLevels) -> dict[str, str]:
    """Member id -> why it cannot go by the levels: it is told them, and leaves by itself."""
    natives = {one.member.member_id: one.native for one in read if one.native is not None}
    found = {member: _lacks(native, levels) for member, native in sorted(natives.items())}
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


def _lacks(native: NativeSubscription, levels: FinalizedLevels) -> str:
    if not native.is_readable:
        return ""
    for feature, level in sorted(levels.levels.items()):
        lowest, highest = native.feature_ranges.get(feature, (0, 0))
        if not lowest <= level <= highest:
            supported = f"{lowest} to {highest}" if highest else "nothing of it"
            return f"{feature} is finalized at {level}, and it supports {supported}"
    return ""
