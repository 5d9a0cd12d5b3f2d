"""The steps of version probing: decisions of leaders, and rejoins for a version."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from system_tests.live.events import AnswersDecided, AssignmentTaken, RejoinRequested, Report
from system_tests.live.evidence.ownership import Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingStep:
    """One decision of a leader, or one rejoin for the version.

    Attributes:
        kind: "assign" or "rejoin".
        member: the leader, or the member that rejoins.
        generation: of the assignments, or the one that the member leaves.
        version: of the assignments, or what the member writes next.
        before: what the member wrote before; of an "assign", the commonly supported version.
        version_probing: whether a future member was in the group.
        empty_members: of an "assign": members without tasks because of their version (KIP-268).
    """

    kind: str
    member: str
    generation: int | None
    version: int
    before: int
    version_probing: bool
    empty_members: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain values; `before` under the name of its meaning."""
        row = asdict(self)
        before = row.pop("before")
        row["commonly_supported_version" if self.kind == "assign" else "used_version_before"] = (
            before
        )
        return row


def probing_steps(reports: Iterable[Report]) -> tuple[ProbingStep, ...]:
    """Return the steps in the order of the reports."""
    undated: dict[Incarnation, AnswersDecided] = {}
    generations: dict[Incarnation, int] = {}
    steps: list[ProbingStep] = []
    for report in reports:
        incarnation = (report.member, report.incarnation)
        match report.event:
            case AnswersDecided() as decision:
                undated[incarnation] = decision
            case AssignmentTaken(generation=generation):
                generations[incarnation] = generation
                if incarnation in undated:
                    decision = undated.pop(incarnation)
                    steps.append(
                        ProbingStep(
                            kind="assign",
                            member=report.member,
                            generation=generation,
                            version=decision.version,
                            before=decision.commonly_supported_version,
                            version_probing=decision.version_probing,
                            empty_members=decision.empty_members,
                        )
                    )
            case RejoinRequested(for_version=True) as rejoin:
                steps.append(
                    ProbingStep(
                        kind="rejoin",
                        member=report.member,
                        generation=generations.get(incarnation),
                        version=rejoin.used_version_after,
                        before=rejoin.used_version_before,
                        version_probing=False,
                    )
                )
            case _:
                pass
    return tuple(steps)
