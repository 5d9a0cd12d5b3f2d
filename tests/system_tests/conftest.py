"""A group coordinator under test control: its clock, its member ids, and all its responses."""

import itertools

import pytest

from system_tests.coordinator import (
    CommitOffsets,
    CommittedOffset,
    Coordinator,
    CoordinatorConfig,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetKey,
    Protocol,
    SyncGroup,
)

SESSION_MS = 10_000
REBALANCE_MS = 60_000


class CoordinatorHarness:
    """One coordinator with one group "g"; tokens are 1, 2, 3 ..., ids are "c-1", "c-2" ..."""

    def __init__(self, **config):
        config.setdefault("initial_rebalance_delay_ms", 0)
        ids = itertools.count(1)
        self.coordinator = Coordinator(
            CoordinatorConfig(**config), lambda prefix: f"{prefix}-{next(ids)}"
        )
        self.now_ms = 0
        self.answers = {}
        self.events = []
        self._tokens = itertools.count(1)

    def take(self, effects):
        for token, response in effects.answers:
            assert token not in self.answers, f"token {token} is answered twice"
            self.answers[token] = response
        self.events.extend(effects.events)

    def ask(self, request):
        token = next(self._tokens)
        self.take(self.coordinator.handle(request, token=token, now_ms=self.now_ms))
        return token

    def advance(self, ms):
        """Let time pass, deadline by deadline."""
        end_ms = self.now_ms + ms
        while (due_ms := self.coordinator.next_deadline_ms()) is not None and due_ms <= end_ms:
            assert due_ms >= self.now_ms
            self.now_ms = due_ms
            self.take(self.coordinator.tick(due_ms))
        self.now_ms = end_ms
        self.take(self.coordinator.tick(end_ms))

    def join(self, member_id="", metadata=b"m", *, instance=None, version=9, **fields):
        fields.setdefault("protocols", (Protocol("range", metadata),))
        fields.setdefault("session_timeout_ms", SESSION_MS)
        fields.setdefault("rebalance_timeout_ms", REBALANCE_MS)
        fields.setdefault("group_id", "g")
        fields.setdefault("protocol_type", "consumer")
        return self.ask(
            JoinGroup(
                member_id=member_id,
                instance_id=instance,
                client_id="c",
                needs_known_member_id=version >= 4,
                may_skip_assignment=version >= 9,
                **fields,
            )
        )

    def new_id(self, **fields):
        """The member id that the MEMBER_ID_REQUIRED round hands out."""
        return self.answers[self.join(**fields)].member_id

    def sync(self, member_id, generation, assignments=None, **fields):
        return self.ask(
            SyncGroup(
                group_id="g",
                member_id=member_id,
                generation=generation,
                assignments=assignments or {},
                **fields,
            )
        )

    def heartbeat(self, member_id, generation, **fields):
        token = self.ask(
            Heartbeat(group_id="g", member_id=member_id, generation=generation, **fields)
        )
        return self.answers[token].error

    def leave(self, *members):
        leaving = tuple(
            LeavingMember(*m) if isinstance(m, tuple) else LeavingMember(m) for m in members
        )
        return self.answers[self.ask(LeaveGroup(group_id="g", members=leaving))]

    def commit(self, member_id="", generation=-1, offset=7, **fields):
        key = OffsetKey("t", 0)
        fields.setdefault("offsets", {key: CommittedOffset(offset)})
        token = self.ask(
            CommitOffsets(group_id="g", member_id=member_id, generation=generation, **fields)
        )
        return self.answers[token].errors[key]

    def describe(self):
        return self.coordinator.describe("g")

    def kinds(self):
        return [event.kind.name for event in self.events]

    def stable(self, count, *, metadata=b"m", instances=(), **fields):
        """A stable group of `count` members; returns their ids, the leader first."""
        waiting = []
        for number in range(count):
            instance = instances[number] if number < len(instances) else None
            if instance is None:
                member_id = self.new_id(metadata=metadata, **fields)
                waiting.append(self.join(member_id, metadata, **fields))
            else:
                waiting.append(self.join("", metadata, instance=instance, **fields))
            for earlier in list(waiting[:-1]):
                if earlier in self.answers:
                    self._rejoin_earlier(waiting, earlier, metadata, instances, fields)
        ids = [self.answers[token].member_id for token in waiting]
        self.settle(ids)
        return ids

    def _rejoin_earlier(self, waiting, earlier, metadata, instances, fields):
        at = waiting.index(earlier)
        instance = instances[at] if at < len(instances) else None
        member_id = self.answers[earlier].member_id
        waiting[at] = self.join(member_id, metadata, instance=instance, **fields)

    def settle(self, ids):
        """All members sync; the leader assigns each member its own id."""
        group = self.describe()
        generation = group.generation
        for member_id in sorted(ids, key=lambda i: i == group.leader_id):
            plan = {i: i.encode() for i in ids} if member_id == group.leader_id else {}
            self.sync(member_id, generation, plan)
        assert self.describe().state == "Stable"


@pytest.fixture
def make_world():
    return CoordinatorHarness


@pytest.fixture
def world():
    return CoordinatorHarness()
