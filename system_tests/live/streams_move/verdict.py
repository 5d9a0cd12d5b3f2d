"""What a rehearsed move must show: records, owners, offsets, restores, downtime."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from system_tests.plan import INITIAL_DELAY_MS

# What the start of the members, the next heartbeat and a slow machine add to a predicted downtime.
SLACK_MS = 60_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A time during which all members run one protocol; times in monotonic ms.

    Attributes:
        protocol: classic or streams.
        stopped_ms: first stop of the phase before, or None in the first one.
        empty_ms: when the coordinator reported the group as empty, or None in the first one.
        started_ms: when all members were started.
        running_ms: when every task ran on exactly one member.
        owners: task -> member at the end of the phase, as its members report.
        described: task -> client at the end, as the coordinator describes it; empty: not asked.
        group_type, state: as the coordinator reports them at the end.
        offsets_before, offsets_kept: committed offsets when the phase before had ended, and when
            the group was empty; equal if nothing is lost.
        predicted, restored: partition -> changelog records at the start, and those that the first
            member that got the task read.
        moves: tasks that moved again after their first restore.
        overlaps: sentences about tasks that ran on two members at a time.
        failures: reasons why members failed.
    """

    protocol: str
    stopped_ms: float | None = None
    empty_ms: float | None = None
    started_ms: float = 0.0
    running_ms: float = 0.0
    owners: Mapping[str, str] = field(default_factory=dict)
    described: Mapping[str, str] = field(default_factory=dict)
    group_type: str = ""
    state: str = ""
    offsets_before: Mapping[int, int] = field(default_factory=dict)
    offsets_kept: Mapping[int, int] = field(default_factory=dict)
    predicted: Mapping[int, int] = field(default_factory=dict)
    restored: Mapping[int, int] = field(default_factory=dict)
    moves: int = 0
    overlaps: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule, whether it holds, and what was seen."""

    name: str
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveVerdict:
    """The verdict of a rehearsal.

    Attributes:
        release, broker: of members and broker.
        phases: in order; checks: in order.
    """

    release: str
    broker: str
    phases: tuple[Phase, ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether there was a move, and all rules hold."""
        return len(self.phases) > 1 and all(check.ok for check in self.checks)


def verdict_of(
    phases: Sequence[Phase],
    *,
    release: str,
    broker: str,
    written: Mapping[str, int],
    counted: Mapping[str, int],
    expiry_ms: Mapping[str, float],
) -> MoveVerdict:
    """Return the verdict.

    Args:
        phases: in order.
        release: of the members.
        broker: release of the broker.
        written: key -> number of records.
        counted: key -> number of its counts in the changelog.
        expiry_ms: protocol -> time until the sessions of stopped members expire; 0: they leave.
    """
    checks = [_records(written, counted)]
    for before, phase in zip((None, *phases), phases, strict=False):
        name = phase.protocol if before is None else f"{before.protocol} to {phase.protocol}"
        checks += _of_phase(phase, name)
        if before is not None:
            checks += _of_move(phase, name, expiry_ms[before.protocol])
    return MoveVerdict(release=release, broker=broker, phases=tuple(phases), checks=tuple(checks))


def _records(written: Mapping[str, int], counted: Mapping[str, int]) -> Check:
    missing = sum(key not in counted for key in written)
    wrong = sum(counted.get(key, 0) != count for key, count in written.items())
    total = sum(written.values())
    ok = total > 0 and not missing and not wrong and len(counted) == len(written)
    seen = "each counted once" if ok else f"{missing} not counted, {wrong - missing} twice or more"
    if not total:
        seen = "so nothing is shown"
    return Check(name="records", ok=ok, sentence=f"{total} records, {seen}")


def _of_phase(phase: Phase, name: str) -> Iterator[Check]:
    is_described = phase.described == phase.owners
    sentence = (
        f"{name}: {len(phase.owners)} tasks run on one member each"
        + ("; " if is_described else f"; the coordinator describes {dict(phase.described)}; ")
        + ("; ".join(phase.overlaps) or "at no time on two, as the coordinator describes them")
    )
    is_owned = bool(phase.owners) and is_described and not phase.overlaps
    yield Check(name="owners", ok=is_owned, sentence=sentence)
    wanted = phase.protocol, "Stable"
    seen = phase.group_type, phase.state
    yield Check(name="state", ok=seen == wanted, sentence=f"{name}: the group is {' '.join(seen)}")
    if phase.failures:
        yield Check(name="members", ok=False, sentence=f"{name}: {'; '.join(phase.failures)}")


def _of_move(phase: Phase, name: str, wait_ms: float) -> Iterator[Check]:
    lost = {p: at for p, at in phase.offsets_before.items() if phase.offsets_kept.get(p) != at}
    yield Check(
        name="offsets",
        ok=bool(phase.offsets_before) and not lost,
        sentence=f"{name}: {len(phase.offsets_before) - len(lost)} of {len(phase.offsets_before)}"
        " committed offsets are kept",
    )
    predicted, restored = sum(phase.predicted.values()), sum(phase.restored.values())
    differ = sorted(
        number
        for number in phase.predicted.keys() | phase.restored.keys()
        if phase.predicted.get(number) != phase.restored.get(number)
    )
    yield Check(
        name="restores",
        ok=predicted > 0 and not differ,
        sentence=f"{name}: {predicted} records predicted (all state, stores in memory),"
        f" {restored} restored"
        + (f"; partitions {differ} differ" if differ else "")
        + (f"; {phase.moves} tasks moved again" if phase.moves else ""),
    )
    stopped, empty = phase.stopped_ms or 0.0, phase.empty_ms or 0.0
    yield Check(
        name="empty",
        ok=empty - stopped > wait_ms / 2 if wait_ms else empty - stopped < SLACK_MS / 2,
        sentence=f"{name}: empty {(empty - stopped) / 1000:.1f} s after the first stop; predicted"
        + (
            f" {wait_ms / 1000:g} s after the last heartbeat, when sessions expire"
            if wait_ms
            else " immediately, since members leave"
        ),
    )
    delay_ms = INITIAL_DELAY_MS if phase.protocol == "streams" else 0
    down, assigned = phase.running_ms - stopped, phase.running_ms - phase.started_ms
    bound = delay_ms + SLACK_MS
    yield Check(
        name="downtime",
        ok=assigned < bound,
        sentence=f"{name}: {down / 1000:.1f} s from the first stop until every task ran:"
        f" {(empty - stopped) / 1000:.1f} s until the group was empty (predicted"
        f" {wait_ms / 1000:g} s), {(phase.started_ms - empty) / 1000:.1f} s for the start of the"
        f" JVMs (not predicted), {assigned / 1000:.1f} s until every task ran (predicted"
        f" {delay_ms / 1000:g} s; FAIL from {bound / 1000:g} s on)",
    )
