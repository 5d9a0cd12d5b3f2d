"""One call of the coordinator: its time, its settings, and its effects so far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from system_tests.coordinator.group import NEVER, Group, Member
from system_tests.coordinator.types import (
    Answer,
    CoordinatorConfig,
    Effects,
    ErrorCode,
    EventKind,
    GroupEvent,
    JoinAnswer,
    Response,
    SyncAnswer,
)


@dataclass(slots=True, kw_only=True)
class Turn:
    """Collects the responses and events of one call."""

    now_ms: int
    config: CoordinatorConfig
    new_member_id: Callable[[str], str]
    choose_leader: Callable[[Sequence[str]], str]
    answers: list[Answer] = field(default_factory=list)
    events: list[GroupEvent] = field(default_factory=list)

    def effects(self) -> Effects:
        """Return the collected responses and events."""
        return Effects(tuple(self.answers), tuple(self.events))

    def answer(self, token: object, response: Response) -> None:
        """Answer a request."""
        self.answers.append(Answer(token, response))

    def record(
        self,
        kind: EventKind,
        group: Group,
        member: Member | None = None,
        *,
        reason: str = "",
        all_members: bool = False,
    ) -> None:
        """Record an event of the group."""
        self.events.append(
            GroupEvent(
                at_ms=self.now_ms,
                kind=kind,
                group_id=group.group_id,
                generation=group.generation,
                member_id=member.member_id if member else "",
                instance_id=member.instance_id if member else None,
                reason=reason,
                members=tuple(group.members) if all_members else (),
            )
        )

    def touch(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """Restart the member's session timeout; `timeout_ms` replaces it for a new member."""
        wait_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.session_deadline_ms = group.wake_at(self.now_ms + wait_ms)

    def answer_join(self, member: Member, response: JoinAnswer) -> None:
        """Answer the member's pending JoinGroup, if there is one."""
        if member.join_token is not None:
            self.answer(member.join_token, response)
            member.join_token = None

    def answer_sync(self, member: Member, response: SyncAnswer) -> None:
        """Answer the member's pending SyncGroup, if there is one."""
        if member.sync_token is not None:
            self.answer(member.sync_token, response)
            member.sync_token = None

    def park_join(self, member: Member, token: object) -> None:
        """Keep a JoinGroup pending.

        An earlier pending JoinGroup of the member is answered REBALANCE_IN_PROGRESS: every request
        gets a response.
        """
        if member.join_token is not None:
            stale = JoinAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
            self.answer_join(member, stale)
        member.join_token = token

    def park_sync(self, member: Member, token: object) -> None:
        """Keep a SyncGroup pending; an earlier one is answered as in `park_join`."""
        if member.sync_token is not None:
            self.answer_sync(member, SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_token = token

    def elect_leader(self, group: Group, member_id: str | None, reason: str) -> None:
        """Make a member the group leader; record an event if the leader changed."""
        if group.leader_id == member_id:
            return
        group.leader_id = member_id
        if member_id is not None:
            self.record(EventKind.LEADER_ELECTED, group, group.members[member_id], reason=reason)


def disarm_session(member: Member) -> None:
    """Stop the member's session timeout; the response that it waits for starts it again."""
    member.session_deadline_ms = NEVER
