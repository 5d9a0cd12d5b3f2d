"""The verdict: checks, each a pure function of the evidence, each with its numbers.

The first two check safety (no record lost, no partition with two owners), the next two version
probing (the last version, the number of rebalances), the last one how long processing paused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from system_tests.live.events import Report
from system_tests.live.evidence.ownership import Incarnation, double_ownerships, ownership_intervals
from system_tests.live.evidence.pauses import (
    PauseTerms,
    expired_sessions,
    ownership_pauses,
    settled_ms,
)
from system_tests.live.evidence.rebalances import count_rebalances
from system_tests.live.evidence.records import coverages, pauses
from system_tests.pauses import longest_pause, pause_numbers
from system_tests.rebalances import Rebalances


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check.

    Attributes:
        name: of the check.
        ok: it found no violation.
        sentence: the result as text.
        numbers: the result as plain values.
        is_decided: there was enough to check; if not, `ok` means nothing.
    """

    name: str
    ok: bool
    sentence: str
    numbers: Mapping[str, object]
    is_decided: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the checks use.

    Attributes:
        reports: of all members, in the order of their time.
        written_ms: partition -> when each record was acknowledged, by offset.
        ended_ms: when each process was seen to be gone.
        gone: incarnations that ended before the members were stopped at the end.
        crashed: incarnations that ended without leaving the group.
        used_versions: member -> the version it wrote last, or will write next.
        promised_versions: the versions the path may end with; the first is the usual one.
        first_generation: generation of the first settled group; last_generation: of the last.
        unsettled: why the group was not settled at the end, or None.
        version_bound: how many version-related rebalances the path may cost.
        pause_terms: what the bound of a partition's pause is made of; None: downtime is asked for.
        until_ms: end of the experiment.
        quarantined: whether the foreign member was quarantined; None without one.
        static: members carry a group.instance.id.
    """

    reports: Sequence[Report]
    written_ms: Mapping[int, Sequence[float]]
    ended_ms: Mapping[Incarnation, float]
    gone: frozenset[Incarnation]
    crashed: frozenset[Incarnation]
    used_versions: Mapping[str, int]
    promised_versions: tuple[int, ...]
    first_generation: int
    last_generation: int
    unsettled: str | None
    version_bound: int
    pause_terms: PauseTerms | None
    until_ms: float
    quarantined: bool | None = None
    static: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All checks, in their order."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check is good."""
        return all(check.ok for check in self.checks)

    def numbers(self, name: str) -> Mapping[str, object]:
        """Return the numbers of the check called `name`."""
        return next(check.numbers for check in self.checks if check.name == name)


def version_bound(*, members: int, rounds: int) -> int:
    """Return how many rebalances for the version the rounds of a bounce may cost.

    Usually one per bounced member and one at the end. It is more if the members' requests do not
    fall into one rebalance: then all but the last bounced member lower and raise their version,
    each in a rebalance of its own.

    >>> version_bound(members=3, rounds=1), version_bound(members=5, rounds=1)
    (4, 8)
    """
    return rounds * max(members + 1, 2 * (members - 1))


def check_evidence(evidence: Evidence) -> Verdict:
    """Return the five checks, and a sixth if a foreign member joined."""
    checks = [
        check_records(evidence),
        check_owners(evidence),
        check_versions(evidence),
        check_rebalances(evidence),
        check_pauses(evidence),
    ]
    if evidence.quarantined is not None:
        checks.append(check_quarantine(evidence))
    return Verdict(checks=tuple(checks))


def check_records(evidence: Evidence) -> Check:
    """Every record was processed; more than once only if a member had crashed."""
    produced = {partition: len(times) for partition, times in evidence.written_ms.items()}
    found = coverages(evidence.reports, produced=produced)
    written = sum(produced.values())
    missing = sum(coverage.missing_records for coverage in found)
    duplicates = sum(coverage.duplicates for coverage in found)
    numbers = {
        "produced": written,
        "processed": written - missing,
        "missing": missing,
        "duplicates": duplicates,
        "missing_offsets": {str(c.partition): list(c.missing) for c in found if c.missing},
    }
    again = f"{duplicates} processed again"
    if missing:
        where = ", ".join(str(c.partition) for c in found if c.missing)
        sentence = f"{missing} of {written} records were never processed (partitions {where})"
    elif not written:
        sentence = "no record was produced, so nothing was tested"
    elif duplicates and not evidence.crashed:
        sentence = f"all {written} records processed, but {again} although no member crashed"
    elif duplicates:
        sentence = f"all {written} records processed; {again}, after a crash"
    else:
        sentence = f"all {written} records processed, none twice"
    ok = written > 0 and not missing and (not duplicates or bool(evidence.crashed))
    return Check(name="records", ok=ok, sentence=sentence, numbers=numbers)


def check_owners(evidence: Evidence) -> Check:
    """No partition ever had two owners."""
    intervals = ownership_intervals(
        evidence.reports, ended_ms=evidence.ended_ms, until_ms=evidence.until_ms
    )
    doubles = double_ownerships(intervals)
    numbers: dict[str, object] = {
        "intervals": len(intervals),
        "double": [
            {
                "partition": double.partition,
                "members": [double.first.member, double.second.member],
                "from_ms": double.second.from_ms,
                "overlap_ms": round(double.overlap_ms, 3),
            }
            for double in doubles
        ],
    }
    if doubles:
        worst = max(doubles, key=lambda double: double.overlap_ms)
        sentence = (
            f"partition {worst.partition} had two owners, {worst.first.member} and "
            f"{worst.second.member}, for {worst.overlap_ms:.0f} ms ({len(doubles)} times in all)"
        )
    elif not intervals:
        sentence = "no partition was ever owned, so nothing was tested"
    else:
        sentence = f"no partition ever had two owners ({len(intervals)} ownership intervals)"
    return Check(
        name="owners", ok=bool(intervals) and not doubles, sentence=sentence, numbers=numbers
    )


def check_versions(evidence: Evidence) -> Check:
    """All members are to write a version that the path promises, in one settled generation."""
    promised = evidence.promised_versions
    astray = {
        member: version
        for member, version in sorted(evidence.used_versions.items())
        if version not in promised
    }
    expected = " or ".join(f"v{version}" for version in promised)
    if evidence.unsettled is not None:
        sentence = f"the group is not settled: {evidence.unsettled}"
    elif not evidence.used_versions:
        sentence = "no member is left"
    elif astray:
        listed = ", ".join(f"{member} v{version}" for member, version in astray.items())
        sentence = f"the path ends at {expected}, but these members write another next: {listed}"
    else:
        reached = " or ".join(f"v{v}" for v in sorted(set(evidence.used_versions.values())))
        sentence = (
            f"every member writes {reached} in its next subscription, as the path promises;"
            " one generation, settled"
        )
    numbers = {
        "promised": list(promised),
        "used": dict(sorted(evidence.used_versions.items())),
    }
    ok = evidence.unsettled is None and bool(evidence.used_versions) and not astray
    return Check(name="versions", ok=ok, sentence=sentence, numbers=numbers)


def rebalances_of(evidence: Evidence) -> Rebalances:
    """Count the rebalances from the first settled generation to the end."""
    return count_rebalances(
        evidence.reports,
        after_generation=evidence.first_generation,
        until_generation=evidence.last_generation,
        gone=evidence.gone,
        static=evidence.static,
    )


def check_rebalances(evidence: Evidence) -> Check:
    """Version probing took no more rebalances than the path allows."""
    found = rebalances_of(evidence)
    version = len(found.version)
    numbers = {
        "total": found.total,
        "membership": len(found.membership),
        "version": version,
        "repeated": len(found.repeated),
        "followup": len(found.followup),
        "version_bound": evidence.version_bound,
    }
    return Check(
        name="rebalances",
        ok=version <= evidence.version_bound,
        sentence=found.counted(evidence.version_bound),
        numbers=numbers,
    )


def check_pauses(evidence: Evidence) -> Check:
    """No partition had no owner for longer than its bound, and no record waited too long.

    The wait of a record may span a pause, which has its own bound: only the part of the wait in
    which a member owned the partition is compared, with one session timeout.
    """
    terms = evidence.pause_terms
    intervals = ownership_intervals(
        evidence.reports, ended_ms=evidence.ended_ms, until_ms=evidence.until_ms
    )
    found = pauses(evidence.reports, written_ms=evidence.written_ms, intervals=intervals)
    by_partition = {str(pause.partition): round(pause.pause_ms, 1) for pause in found}
    worst = max(found, key=lambda pause: pause.pause_ms, default=None)
    slowest = max(found, key=lambda pause: pause.owned_ms, default=None)
    bound = None if terms is None else terms.session_ms
    unowned = ownership_pauses(
        evidence.reports,
        intervals,
        terms=terms,
        from_ms=settled_ms(evidence.reports, evidence.first_generation),
    )
    longest = longest_pause(unowned)
    expired = {} if terms is None else expired_sessions(evidence.reports, terms)
    numbers = {
        "worst_ms": None if worst is None else round(worst.pause_ms, 1),
        "bound_ms": bound,
        "owned_ms": None if slowest is None else round(slowest.owned_ms, 1),
        "expired_ms": {member: round(ms, 1) for member, ms in expired.items()},
        "by_partition_ms": by_partition,
        "longest": pause_numbers(longest),
        "beyond": sum(not pause.is_within for pause in unowned),
    }
    if worst is None or slowest is None:
        return Check(
            name="pauses", ok=False, sentence="no record was ever processed", numbers=numbers
        )
    sentence = "no partition paused" if longest is None else str(longest)
    sentence += f"; a written record waited at most {worst.pause_ms:.0f} ms"
    sentence += f" (partition {worst.partition})"
    if terms is not None and expired:
        down = ", ".join(f"{member} was down for {ms:.0f} ms" for member, ms in expired.items())
        sentence += f"; sessions of {terms.session_ms:.0f} ms expired: {down}"
    is_late = bound is not None and slowest.owned_ms > bound
    if is_late:
        sentence += (
            f"; of partition {slowest.partition} it waited {slowest.owned_ms:.0f} ms while a member"
            f" owned the partition, longer than a session timeout of {bound:.0f} ms"
        )
    ok = not is_late and (longest is None or longest.is_within)
    return Check(name="pauses", ok=ok, sentence=sentence, numbers=numbers)


def check_quarantine(evidence: Evidence) -> Check:
    """A member with unreadable user data got no task, and all others went on."""
    ok = bool(evidence.quarantined)
    sentence = (
        "the foreign member was quarantined; all others went on"
        if ok
        else "no leader quarantined the foreign member"
    )
    return Check(name="quarantine", ok=ok, sentence=sentence, numbers={"quarantined": ok})
