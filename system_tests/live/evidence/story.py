"""The report page of a live bounce: its story, from the reports of its members."""

from collections.abc import Mapping, Sequence
from typing import Final

from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    MemberStarted,
    MemberStopped,
    PartitionsLost,
    RejoinRequested,
    Report,
    SubscriptionWritten,
)
from system_tests.live.evidence.ownership import Incarnation, ownership_intervals
from system_tests.live.evidence.rebalances import count_rebalances
from system_tests.live.options import LiveOptions
from system_tests.live.plan import LivePlan
from system_tests.live.report import Outcome
from system_tests.report import (
    GROUP,
    Bar,
    Mark,
    MarkKind,
    OpenBars,
    Rebalance,
    Story,
    causes_of,
    rebalance_of,
    rejoin_kind,
)
from system_tests.trace import LEGEND, TraceLine, format_header, format_line

_REST: Final = 1.03  # the last generation stays visible


def story_of_live(
    outcome: Outcome,
    plan: LivePlan,
    options: LiveOptions,
    *,
    lines: Sequence[TraceLine],
    replay: str,
) -> Story:
    """Return what the report of one live bounce shows.

    Args:
        outcome: how it ended, with the reports of its members.
        plan: the path.
        options: its numbers.
        lines: of the trace, in order.
        replay: the command that repeats it.
    """
    began_ms = min((report.at_ms for report in outcome.reports), default=0.0)
    reports = [_since(report, began_ms) for report in outcome.reports]
    ended_ms = {incarnation: at_ms - began_ms for incarnation, at_ms in outcome.ended_ms.items()}
    end_ms = _REST * max([*ended_ms.values(), *(report.at_ms for report in reports)], default=1.0)
    names = tuple(sorted(outcome.records))
    stages = "; then ".join(stage.describe() for stage in plan.stages)
    return Story(
        title=f"{plan.before.release} to {plan.stages[-1].release}, live, seed {options.seed}",
        ok=outcome.ok,
        facts=(*_verdict(outcome), f"bounces: {stages}"),
        replay=replay,
        clock="seconds",
        lanes=names,
        partitions=tuple(f"partition {number}" for number in range(options.partitions)),
        versions=_versions(reports, ended_ms, end_ms),
        owners=_owners(reports, ended_ms, end_ms),
        marks=(*_marks(reports), *_ends(reports, ended_ms), *_broken(outcome, end_ms / _REST)),
        rebalances=_rebalances(reports, outcome, ended_ms),
        trace=(LEGEND, format_header(names), *(format_line(x, members=names) for x in lines)),
        end_ms=end_ms,
    )


def _since(report: Report, began_ms: float) -> Report:
    return Report(
        member=report.member,
        incarnation=report.incarnation,
        at_ms=report.at_ms - began_ms,
        event=report.event,
    )


def _verdict(outcome: Outcome) -> tuple[str, ...]:
    """Return the failure, then failed checks, then good ones."""
    failure = () if outcome.failure is None else (outcome.failure,)
    checks = () if outcome.verdict is None else outcome.verdict.checks
    ordered = sorted(checks, key=lambda check: check.ok)
    return (*failure, *(f"{check.name}: {check.sentence}" for check in ordered))


def _versions(
    reports: Sequence[Report], ended_ms: Mapping[Incarnation, float], end_ms: float
) -> tuple[Bar, ...]:
    """Return a bar for each version that an incarnation writes."""
    open_bars = OpenBars()
    programs: dict[Incarnation, str] = {}
    # Reports of an incarnation may arrive after its successor started; their times are right.
    ends = [(at_ms, 0, incarnation, None) for incarnation, at_ms in ended_ms.items()]
    reported = [(r.at_ms, 1, (r.member, r.incarnation), r.event) for r in reports]
    for at_ms, _, incarnation, event in sorted([*ends, *reported], key=lambda row: row[:3]):
        match event:
            case None | MemberStopped() | MemberFailed():
                open_bars.end_where(at_ms, lane=incarnation[0])
            case MemberStarted(release=release, upgrade_from=pin):
                programs[incarnation] = release + (f", upgrade.from={pin}" if pin else "")
            case SubscriptionWritten(version=number):
                program = programs.get(incarnation, "")
                open_bars.switch(
                    incarnation[0],
                    f"v{number}",
                    at_ms,
                    text=f"{program.partition(',')[0]} v{number}".strip(),
                    hover=f"{incarnation[0]} on {program} writes v{number}",
                )
            case _:
                pass
    open_bars.end_where(end_ms)
    return open_bars.finished()


def _owners(
    reports: Sequence[Report], ended_ms: Mapping[Incarnation, float], end_ms: float
) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            lane=f"partition {owned.partition}",
            from_ms=owned.from_ms,
            until_ms=owned.to_ms,
            key=owned.member,
            text=owned.member,
            hover=f"partition {owned.partition}: {owned.member}",
        )
        for owned in ownership_intervals(reports, ended_ms=ended_ms, until_ms=end_ms)
    )


def _marks(reports: Sequence[Report]) -> tuple[Mark, ...]:
    """Return a mark for each report that no bar shows."""
    marks: list[Mark] = []
    for report in reports:
        mark = _mark(report)
        if mark is not None:
            kind, text = mark
            marks.append(Mark(lane=report.member, at_ms=report.at_ms, kind=kind, hover=text))
    return tuple(marks)


def _mark(report: Report) -> tuple[MarkKind, str] | None:
    name = report.member
    match report.event:
        case MemberStarted(release=release, upgrade_from=pin):
            text = f"{name} starts on {release}" + (f", upgrade.from={pin}" if pin else "")
            return MarkKind.STARTS, text
        case AnswersDecided() as decided:
            text = (
                f"{name} leads {decided.members} members, assigns v{decided.version}"
                f"\nrule: {decided.rule}\n{decided.why}"
            )
            return MarkKind.LEADS, text
        case RejoinRequested() as rejoin:
            before, after = rejoin.used_version_before, rejoin.used_version_after
            text = f"{name} rejoins, v{before} to v{after}\nrule: {rejoin.rule}\n{rejoin.why}"
            return rejoin_kind(before, after), text
        case PartitionsLost(partitions=partitions):
            text = f"{name} was removed from the group and lost {', '.join(map(str, partitions))}"
            return MarkKind.NOTES, text
        case MemberFailed(why=why):
            return MarkKind.DIES, f"{name} fails: {why}"
        case MemberStopped():
            return MarkKind.STOPS, f"{name} stops and leaves the group"
        case _:
            return None


def _ends(reports: Sequence[Report], ended_ms: Mapping[Incarnation, float]) -> tuple[Mark, ...]:
    """Return a mark for each incarnation that ended without a report of its end."""
    reported = {
        (report.member, report.incarnation)
        for report in reports
        if isinstance(report.event, MemberFailed | MemberStopped)
    }
    lanes = {report.member for report in reports}
    return tuple(
        Mark(
            lane=incarnation[0],
            at_ms=at_ms,
            kind=MarkKind.DIES,
            hover=f"{incarnation[0]} is killed",
        )
        for incarnation, at_ms in sorted(ended_ms.items())
        if incarnation not in reported and incarnation[0] in lanes
    )


def _broken(outcome: Outcome, at_ms: float) -> tuple[Mark, ...]:
    """Return a mark for each failed check, at the end."""
    checks = () if outcome.verdict is None else outcome.verdict.checks
    sentences = [check.sentence for check in checks if not check.ok]
    sentences += [] if outcome.failure is None else [outcome.failure]
    return tuple(
        Mark(lane=GROUP, at_ms=at_ms, kind=MarkKind.BROKEN, hover=sentence)
        for sentence in sentences
    )


def _rebalances(
    reports: Sequence[Report], outcome: Outcome, ended_ms: Mapping[Incarnation, float]
) -> tuple[Rebalance, ...]:
    """Return each generation at the time at which its first member took it."""
    taken: dict[int, tuple[float, set[str]]] = {}
    for report in sorted(reports, key=lambda report: report.at_ms):
        if isinstance(report.event, AssignmentTaken):
            taken.setdefault(report.event.generation, (report.at_ms, set()))[1].add(report.member)
    first = outcome.first_generation
    counted = count_rebalances(
        reports,
        after_generation=max(taken, default=0) if first is None else first,
        until_generation=outcome.generation or 0,
        gone=ended_ms,
    )
    causes = causes_of(
        membership=counted.membership,
        version=counted.version,
        followup=counted.followup,
        repeated=counted.repeated,
    )
    return tuple(
        rebalance_of(generation, at_ms, len(members), causes)
        for generation, (at_ms, members) in sorted(taken.items())
    )
