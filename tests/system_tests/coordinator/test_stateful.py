"""The coordinator keeps its promises for any requests in any order (stateful test)."""

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from system_tests.coordinator import (
    CommitOffsets,
    CommittedOffset,
    Coordinator,
    CoordinatorConfig,
    ErrorCode,
    EventKind,
    GroupState,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetKey,
    Protocol,
    SyncGroup,
)
from tests.nightly import examples

INSTANCES = st.sampled_from([None, None, "i", "j"])
METADATA = st.sampled_from([b"1", b"2"])
PICK = st.integers(0, 5)
SHARED = Protocol("range", b"")
KEY = OffsetKey("t", 0)


class Groups(RuleBasedStateMachine):
    """Clients with correct and outdated state, and one coordinator."""

    @initialize(
        delay_ms=st.sampled_from([0, 3_000]),
        size=st.sampled_from([2, 100, 100]),
        instances=st.lists(INSTANCES, max_size=3),
        settled=st.booleans(),
    )
    def begin(self, delay_ms, size, instances, settled):
        ids = itertools.count(1)
        config = CoordinatorConfig(
            initial_rebalance_delay_ms=delay_ms, group_max_size=size, group_record_limit=900
        )
        self.coordinator = Coordinator(config, lambda prefix: f"{prefix}-{next(ids)}")
        self.now_ms = 0
        self.tokens = itertools.count(1)
        self.open = {}
        self.generation = 0
        self.leaders = {}
        self.known = [("ghost", None)]
        for instance in instances:
            self.come(instance, b"1", 3)
        if settled:
            self.wait(3_000)
            self.all_members_join(9)
            self.all_members_sync(with_leader=True)

    def pick(self, number):
        """A client: mostly a current member, sometimes a pending or a replaced one."""
        group = self.coordinator.describe("g")
        now = [(m.member_id, m.instance_id) for m in group.members]
        return (now + self.known[-2:])[number % (len(now) + len(self.known[-2:]))]

    def take(self, effects):
        for token, answer in effects.answers:
            assert token in self.open, f"token {token} is answered twice or was never asked"
            request = self.open.pop(token)
            if isinstance(request, JoinGroup) and answer.error is ErrorCode.NONE:
                self.check_join(answer)
        for event in effects.events:
            assert event.at_ms == self.now_ms
            if event.kind is EventKind.GROUP_RELOADED:
                self.generation = event.generation
                self.leaders.clear()
            assert event.generation >= self.generation
            self.generation = event.generation

    def check_join(self, answer):
        assert answer.member_id
        assert answer.leader_id
        if answer.members and not answer.skip_assignment:
            leader = self.leaders.setdefault(answer.generation, answer.member_id)
            assert leader == answer.member_id, "two members were told to assign one generation"
            assert answer.leader_id == answer.member_id
            assert answer.member_id in [m.member_id for m in answer.members]

    def ask(self, request):
        token = next(self.tokens)
        self.open[token] = request
        effects = self.coordinator.handle(request, token=token, now_ms=self.now_ms)
        self.take(effects)
        return next((a.response for a in effects.answers if a.token == token), None)

    def join_request(self, member_id, instance, metadata, version):
        return JoinGroup(
            group_id="g",
            protocol_type="consumer",
            protocols=(Protocol("sticky", metadata), SHARED),
            session_timeout_ms=6_000,
            rebalance_timeout_ms=15_000,
            member_id=member_id,
            instance_id=instance,
            client_id="c",
            needs_known_member_id=version >= 4,
            may_skip_assignment=version >= 9,
        )

    @rule(instance=INSTANCES, metadata=METADATA, version=st.sampled_from([3, 7, 9]))
    def come(self, instance, metadata, version):
        former = [(m.member_id, m.instance_id) for m in self.coordinator.describe("g").members]
        answer = self.ask(self.join_request("", instance, metadata, version))
        if answer is not None and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.known.append((answer.member_id, None))
        self.known += [who for who in former if instance is not None and who[1] == instance]

    @rule(member=PICK, metadata=METADATA, version=st.sampled_from([5, 9]))
    def join_again(self, member, metadata, version):
        member = self.pick(member)
        self.ask(self.join_request(*member, metadata, version))

    @rule(member=PICK, stale=st.integers(0, 1), size=st.sampled_from([1, 1, 900]))
    def sync(self, member, stale, size):
        member = self.pick(member)
        group = self.coordinator.describe("g")
        plan = {m.member_id: b"a" * size for m in group.members}
        is_leader = group.leader_id == member[0]
        self.ask(
            SyncGroup(
                group_id="g",
                member_id=member[0],
                instance_id=member[1],
                generation=group.generation - stale,
                assignments=plan if is_leader else {},
            )
        )

    @rule(version=st.sampled_from([5, 9]))
    def all_members_join(self, version):
        """All members that do not wait yet join the rebalance."""
        group = self.coordinator.describe("g")
        if group.state is GroupState.PREPARING_REBALANCE:
            for m in group.members:
                waits = any(
                    isinstance(r, JoinGroup) and r.member_id == m.member_id
                    for r in self.open.values()
                )
                if not waits:
                    self.ask(self.join_request(m.member_id, m.instance_id, b"1", version))

    @rule(with_leader=st.booleans())
    def all_members_sync(self, with_leader):
        group = self.coordinator.describe("g")
        if group.state is GroupState.COMPLETING_REBALANCE:
            for m in sorted(group.members, key=lambda m: m.member_id == group.leader_id):
                is_leader = m.member_id == group.leader_id
                if is_leader and not with_leader:
                    continue
                self.ask(
                    SyncGroup(
                        group_id="g",
                        member_id=m.member_id,
                        instance_id=m.instance_id,
                        generation=group.generation,
                        assignments={i.member_id: b"a" for i in group.members} if is_leader else {},
                    )
                )

    @rule(member=PICK)
    def beat(self, member):
        member = self.pick(member)
        generation = self.coordinator.describe("g").generation
        answer = self.ask(
            Heartbeat(
                group_id="g", member_id=member[0], instance_id=member[1], generation=generation
            )
        )
        assert answer is not None

    @rule(member=PICK)
    def commit(self, member):
        member = self.pick(member)
        generation = self.coordinator.describe("g").generation
        request = CommitOffsets(
            group_id="g",
            member_id=member[0],
            instance_id=member[1],
            generation=generation,
            offsets={KEY: CommittedOffset(1)},
        )
        assert self.ask(request) is not None

    @rule(member=PICK)
    def leave(self, member):
        member = self.pick(member)
        leaving = (LeavingMember(*member),)
        assert self.ask(LeaveGroup(group_id="g", members=leaving)) is not None

    @rule(ms=st.sampled_from([1, 1_000, 3_000, 6_000, 15_000]))
    def wait(self, ms):
        end_ms = self.now_ms + ms
        steps = 0
        while (due_ms := self.coordinator.next_deadline_ms()) is not None and due_ms <= end_ms:
            steps += 1
            assert steps < 1_000, "time does not advance"
            self.now_ms = max(self.now_ms, due_ms)
            self.take(self.coordinator.tick(self.now_ms))
        self.now_ms = end_ms

    @rule(really=st.integers(0, 3))
    def move(self, really):
        if really:
            return
        self.take(self.coordinator.reload("g", now_ms=self.now_ms))

    @invariant()
    def the_leader_is_a_member(self):
        group = self.coordinator.describe("g")
        ids = [m.member_id for m in group.members]
        assert len(ids) == len(set(ids))
        assert (group.leader_id in ids) if ids else group.leader_id is None

    @invariant()
    def an_instance_has_one_member(self):
        group = self.coordinator.describe("g")
        instances = [m.instance_id for m in group.members if m.instance_id]
        assert len(instances) == len(set(instances))

    @invariant()
    def state_and_membership_agree(self):
        group = self.coordinator.describe("g")
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            assert not group.members
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert group.members

    @invariant()
    def a_waiting_member_has_a_reason(self):
        group = self.coordinator.describe("g")
        joins = sum(isinstance(r, JoinGroup) for r in self.open.values())
        syncs = sum(isinstance(r, SyncGroup) for r in self.open.values())
        assert not joins or group.state is GroupState.PREPARING_REBALANCE
        assert not syncs or group.state is GroupState.COMPLETING_REBALANCE
        assert joins + syncs <= len(group.members)

    def teardown(self):
        """Without further requests, every request is answered and the group empties."""
        if hasattr(self, "coordinator"):
            self.wait(1_000_000)
            assert self.open == {}
            assert self.coordinator.describe("g").members == ()
            assert self.coordinator.next_deadline_ms() is None


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
