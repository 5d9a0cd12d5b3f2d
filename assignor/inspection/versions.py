"""The version of a group, the possible version, members that limit it; and the leader.

A leader answers JVM members in the lowest version that any member wrote, so one forgotten
`upgrade.from` or one old program limits the whole group. DescribeGroups does not name the leader,
but its assignments are evidence: only native leaders write native content, and a leader writes its
own version of the consumer protocol.
"""

from collections.abc import Sequence
from typing import Final

from assignor.inspection.names import labels
from assignor.inspection.routing import few
from assignor.inspection.values import Holder, LeaderLook, MemberLook, VersionsLook
from probing import EARLIEST_NATIVE_VERSION, UNKNOWN_VERSION, protocol_level
from probing.features import UNKNOWN_LEVELS, group_levels

PINNED: Final = "forgotten pin"
OLD: Final = "old program"
EITHER: Final = "pin or old program"

_CAPPED: Final = (
    "the finalized level of assignment.protocol is {}, but all members support {}: "
    "raise it with `assignor features`"
)


def look_at_versions(members: Sequence[MemberLook]) -> VersionsLook | None:
    """The group's version and the members that limit it; None if no subscription can be read."""
    readable = [member for member in members if member.used]
    if not readable:
        return None
    possible = max(_highest_writable(member) for member in readable)
    kafkas = [member for member in readable if member.native is None]
    ceilings = [_ceiling(member) for member in (kafkas or readable)]
    lowest = min(ceilings)
    if kafkas:
        # Native members beside JVM members write versions that those read; they do not limit.
        possible = max(_highest_writable(member) for member in kafkas)
    holders = _holders(readable, lowest, possible)
    in_force = min(
        (member.answer.version for member in readable if member.answer.version), default=lowest
    )
    levels_seen = [
        levels for member in readable for levels in (member.levels, member.answer.levels)
    ]
    level = protocol_level(group_levels(UNKNOWN_LEVELS, levels_seen))
    is_capped = not kafkas and level is not None and in_force <= level < possible
    return VersionsLook(
        in_force=in_force,
        possible=possible,
        holders=holders,
        sentence=f"version {in_force}; {_CAPPED.format(level, possible)}"
        if is_capped and not holders
        else _sentence(readable, kafkas, in_force, possible, holders),
        level=level,
    )


def _ceiling(member: MemberLook) -> int:
    """The highest version that the group can use with this member."""
    if member.pin is not None:
        return member.pin
    if member.native is not None:
        return member.native
    return member.used if member.supported == UNKNOWN_VERSION else member.supported


def _highest_writable(member: MemberLook) -> int:
    """The highest version that the member's program can write, as far as is known."""
    if member.native is not None:
        return member.native
    return max(member.evidence.latest, member.used, member.supported)


def _holders(members: Sequence[MemberLook], lowest: int, possible: int) -> tuple[Holder, ...]:
    """Processes whose members limit the group to less than another program can write."""
    found: dict[str, Holder] = {}
    for member in members:
        ceiling = _ceiling(member)
        is_lowest = ceiling == lowest < possible
        if member.process not in found and (is_lowest or member.pin is not None):
            kind, why, remedy = _why(member)
            found[member.process] = Holder(
                process=member.process,
                client=member.client,
                version=ceiling,
                kind=kind,
                why=why,
                remedy=remedy,
            )
    return tuple(
        sorted(found.values(), key=lambda holder: (holder.version, holder.client, holder.process))
    )


def _why(member: MemberLook) -> tuple[str, str, str]:
    """Kind, reason and remedy of a member that limits the version."""
    evidence = member.evidence
    values = _listed(evidence.pin_values)
    remove_pin = "remove upgrade.from from its configuration and bounce it"
    wrote = f"it writes version {member.used}"
    if member.pin is not None:
        return PINNED, f"it reports that upgrade.from pins it to version {member.pin}", remove_pin
    if evidence.pinned and not evidence.releases:
        span = _span(evidence.pinned)
        why = f"{wrote} although its consumer is of {span}: upgrade.from is set, to {values}"
        return PINNED, why, remove_pin
    if evidence.pinned:
        why = (
            f"{wrote}: either upgrade.from is set on it, to {values} ({_span(evidence.pinned)}), "
            f"or its program is of {_span(evidence.releases)}"
        )
        return EITHER, why, f"{remove_pin}; if there is none, upgrade its program"
    span = _span(evidence.releases)
    if member.supported != UNKNOWN_VERSION:
        wrote = f"it reads no version above {member.supported}"
    return OLD, f"{wrote}: its program is of {span}", "upgrade its program"


def _listed(values: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(values[:-1]), *values[-1:])))


def _span(releases: Sequence[str]) -> str:
    if not releases:
        return "an unknown release"
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _sentence(
    members: Sequence[MemberLook],
    kafkas: Sequence[MemberLook],
    in_force: int,
    possible: int,
    holders: Sequence[Holder],
) -> str:
    """One sentence about the version of the group."""
    lagging = [member.client for member in members if member.answer.version not in (0, member.used)]
    if holders:
        names = few(list(dict.fromkeys(holder.client for holder in holders)))
        what = f" instead of {possible}" if in_force < possible else ""
        return f"version {in_force}{what}, limited by {names}"
    if in_force < possible and lagging:
        return f"version {in_force}; becomes {possible} in the next rebalances; no action needed"
    if kafkas and len(kafkas) < len(members):
        return f"version {in_force}, the highest of the JVM members; native members add a trailer"
    if in_force < possible:
        is_announced = any(member.answer.next_version == possible for member in members)
        when = (
            "at the next rebalance; no action needed"
            if is_announced
            else "when its leader allows it"
        )
        return f"version {in_force}; becomes {possible} {when}"
    return f"version {in_force}, the highest that all members support"


def look_at_leader(members: Sequence[MemberLook]) -> LeaderLook:
    """Members that may be the leader, with the evidence."""
    answered = [member for member in members if member.answer.consumer_version >= 0]
    if not answered:
        return LeaderLook(candidates=(), why="no assignment can be read")
    candidates, names = list(members), labels(members)
    natives = [member for member in candidates if member.native is not None]
    reasons = []
    if any(member.answer.native for member in answered):
        candidates = natives
        reasons.append("assignments have native content, which only native leaders write")
    elif natives:
        candidates = [member for member in candidates if member.native is None]
        reasons.append("assignments of native members have no native content: a JVM member leads")
    written = {member.answer.consumer_version for member in answered}
    same = [member for member in candidates if member.consumer_version in written]
    if len(written) == 1 and same and len(same) < len(candidates):
        candidates = same
        reasons.append(
            f"assignments are in version {min(written)} of the consumer protocol, like their own"
        )
    highest = max((v for member in answered if (v := member.answer.version)), default=0)
    able = [member for member in candidates if _highest_writable(member) >= highest]
    if able and len(able) < len(candidates) and highest < EARLIEST_NATIVE_VERSION:
        candidates = able
        reasons.append(f"an assignment is in version {highest}, which the others cannot write")
    if len(candidates) == 1 and not reasons:
        reasons.append("the only member")
    return LeaderLook(
        candidates=tuple(sorted(names[member.described.member_id] for member in candidates)),
        why="; ".join(reasons)
        or "DescribeGroups does not name the leader, and all members write alike",
    )
