"""What the observer is told, made from what leader and member know."""

from assignor.observe import AnswersDecided, AssignmentTaken
from assignor.rebalance import GroupAnswer, StreamsMember
from encoding import Assignment, task_order
from probing import Content


def decided(answer: GroupAnswer, *, seconds: float) -> AnswersDecided:
    """Say what the leader decided, and how long that took."""
    decision = answer.decision
    answers = answer.answers.values()
    return AnswersDecided(
        version=decision.version,
        commonly_supported_version=decision.commonly_supported_version,
        members=len(answer.answers),
        rule=decision.rule,
        why=decision.why,
        version_probing=decision.version_probing,
        future_members=decision.future_members,
        quarantined_members=tuple(sorted(answer.quarantined)),
        warnings=answer.warnings,
        joined=answer.joined,
        next_version=decision.next_version,
        empty_members=tuple(
            one.member_id for one in decision.answers if one.content is Content.EMPTY
        ),
        placed_tasks=sum(len(set(one.assignment.active_tasks)) for one in answers),
        placed_standbys=sum(len(one.assignment.standby_tasks) for one in answers),
        moved_tasks=answer.moved_tasks,
        waiting_members=tuple(sorted(answer.withheld)),
        size=sum(len(one.user_data) for one in answers),
        seconds=seconds,
    )


def taken(
    assignment: Assignment, member: StreamsMember, generation: int, *, size: int
) -> AssignmentTaken:
    """Say what a member took, after it did."""
    held = member.held
    return AssignmentTaken(
        generation=generation,
        version=assignment.version,
        commonly_supported_version=assignment.commonly_supported_version,
        active_tasks=tuple(sorted(held.active, key=task_order)),
        standby_tasks=tuple(sorted(held.standby, key=task_order)),
        error_code=assignment.error_code,
        next_version=member.state.used_version,
        warmup_tasks=tuple(sorted(held.warmup, key=task_order)),
        size=size,
    )
