"""What version a group speaks, what it could speak, who holds it down and why; and who leads.

A leader answers JVM members in the lowest version written, never above what anybody supports, so
that one forgotten `upgrade.from` or one old program holds everybody. DescribeGroups does not tell
the leader; its answers do, in part: only ours writes native content, and every client writes its
own version of the consumer protocol into all answers.
"""

from collections.abc import Sequence
from typing import Final

from assignor.inspection.members import labels
from assignor.inspection.routing import few
from assignor.inspection.values import Holder, LeaderLook, MemberLook, VersionsLook
from probing import EARLIEST_NATIVE_VERSION, UNKNOWN_VERSION, protocol_level
from probing.features import UNKNOWN_LEVELS, group_levels

PINNED: Final = "forgotten pin"
OLD: Final = "old program"
EITHER: Final = "pin or old program"

_CAPPED: Final = (
    "the finalized level of assignment.protocol is {}, and all read {}: "
    "`assignor features` raises it"
)


def look_at_versions(members: Sequence[MemberLook]) -> VersionsLook | None:
    """The group's version and its holders; None where no member's numbers could be read."""
    readable = [one for one in members if one.used]
    if not readable:
        return None
    possible = max(_could(one) for one in readable)
    kafkas = [one for one in readable if one.native is None]
    ceilings = [_ceiling(one) for one in (kafkas or readable)]
    lowest = min(ceilings)
    if kafkas:
        # Beside JVM members ours write what those read: that is no holding down.
        possible = max(_could(one) for one in kafkas)
    holders = _holders(readable, lowest, possible)
    in_force = min((one.answer.version for one in readable if one.answer.version), default=lowest)
    said = [levels for one in readable for levels in (one.levels, one.answer.levels)]
    level = protocol_level(group_levels(UNKNOWN_LEVELS, said))
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
    """The highest version that a member lets the group speak."""
    if member.pin is not None:
        return member.pin
    if member.native is not None:
        return member.native
    return member.used if member.supported == UNKNOWN_VERSION else member.supported


def _could(member: MemberLook) -> int:
    """The highest version that the member's program can write, as far as it shows."""
    if member.native is not None:
        return member.native
    return max(member.evidence.latest, member.used, member.supported)


def _holders(members: Sequence[MemberLook], lowest: int, possible: int) -> tuple[Holder, ...]:
    """Processes whose members keep the group below what some program in it can write."""
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
    return tuple(sorted(found.values(), key=lambda one: (one.version, one.client, one.process)))


def _why(member: MemberLook) -> tuple[str, str, str]:
    """Kind, reason and remedy; the first row that holds."""
    evidence = member.evidence
    values = _listed(evidence.pin_values)
    take_out = "take upgrade.from out of its configuration and bounce it"
    wrote = f"it writes version {member.used}"
    if member.pin is not None:
        return PINNED, f"upgrade.from pins it to version {member.pin}, it says itself", take_out
    if evidence.pinned and not evidence.releases:
        span = _span(evidence.pinned)
        why = f"{wrote} although its consumer is of {span}: upgrade.from is set, to {values}"
        return PINNED, why, take_out
    if evidence.pinned:
        why = (
            f"{wrote}: either upgrade.from is set on it, to {values} ({_span(evidence.pinned)}), "
            f"or its program is of {_span(evidence.releases)}"
        )
        return EITHER, why, f"{take_out}; if there is none, upgrade its program"
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
    """The first row that holds."""
    lagging = [one.client for one in members if one.answer.version not in (0, one.used)]
    if holders:
        names = few(list(dict.fromkeys(one.client for one in holders)))
        what = f"its programs could speak {possible}" if in_force < possible else "more to come"
        return f"version {in_force}; {what}, held down by {names}"
    if in_force < possible and lagging:
        return f"version {in_force}; it can go up to {possible} with the next rebalances"
    if kafkas and len(kafkas) < len(members):
        return f"version {in_force}, the highest that the JVM members read; ours read each other"
    if in_force < possible:
        told = any(one.answer.next_version == possible for one in members)
        when = "with the next rebalance" if told else "once its leader says so"
        return f"version {in_force}; it goes up to {possible} {when}"
    return f"version {in_force}, the highest that all members read"


def look_at_leader(members: Sequence[MemberLook]) -> LeaderLook:
    """Members that may have written the answers, with the evidence."""
    answered = [one for one in members if one.answer.consumer_version >= 0]
    if not answered:
        return LeaderLook(candidates=(), why="no answer of a leader can be read")
    everybody, names = list(members), labels(members)
    natives = [one for one in everybody if one.native is not None]
    reasons = []
    if any(one.answer.native for one in answered):
        everybody = natives
        reasons.append("answers carry native content, which only a leader of ours writes")
    elif natives:
        everybody = [one for one in everybody if one.native is None]
        reasons.append("answers to members of ours carry nothing native: a JVM member leads")
    written = {one.answer.consumer_version for one in answered}
    same = [one for one in everybody if one.consumer_version in written]
    if len(written) == 1 and same and len(same) < len(everybody):
        everybody = same
        reasons.append(f"answers are in version {min(written)} of the consumer protocol, as theirs")
    highest = max((v for one in answered if (v := one.answer.version)), default=0)
    able = [one for one in everybody if _could(one) >= highest]
    if able and len(able) < len(everybody) and highest < EARLIEST_NATIVE_VERSION:
        everybody = able
        reasons.append(f"an answer is in version {highest}, which the others cannot write")
    if len(everybody) == 1 and not reasons:
        reasons.append("the only member")
    return LeaderLook(
        candidates=tuple(sorted(names[one.described.member_id] for one in everybody)),
        why="; ".join(reasons) or "DescribeGroups does not tell the leader, and all write alike",
    )
