"""The aiokafka adapter with aiokafka's protocol values, without a network."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from assignor import ConfigError, TasksListener, Topology
from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.coordinator import owned_in
from assignor.adapters.membership import followups
from assignor.errors import CopartitionMismatch
from assignor.observe import (
    AnswerHandled,
    AnswersDecided,
    AssignmentTaken,
    MembershipLost,
    SubscriptionWritten,
)
from assignor.rebalance import TasksHeld
from encoding import (
    Assignment,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from tests.assignor.adapters.members import AnyConsumer, Listener, cluster
from tests.assignor.rebalance.groups import TOPOLOGY, start


class Coordinator:
    """A fake of aiokafka's coordinator: counts requests, keeps completed joins."""

    def __init__(self):
        self.requests = 0
        self.generation = 1
        self.completed = []
        self._performed_join_prepare = False
        self._rejoin_needed_fut = SimpleNamespace(done=lambda: False)
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(topics={"lines"}))

    def request_rejoin(self):
        self.requests += 1

    async def _perform_assignment(self, response):
        return response.members

    async def _on_join_complete(self, generation, member_id, protocol, answer):
        self.completed.append(answer)


def consumer_of(*assignors, group_id="app", instance=None):
    coordinator = Coordinator()
    coordinator.consumer = AnyConsumer(
        _coordinator=coordinator,
        _group_id=group_id,
        _group_instance_id=instance,
        _partition_assignment_strategy=list(assignors),
    )
    return coordinator.consumer


def made(*, number=1, topology=TOPOLOGY, instance=None, process_id="number", **options):
    seen = []
    assignor = StreamsAssignor(
        topology,
        application_id="app",
        process_id=UUID(int=number) if process_id == "number" else process_id,
        observer=seen.append,
        **options,
    )
    consumer = consumer_of(assignor, instance=instance)
    assignor.attach(consumer)
    return assignor, consumer._coordinator, seen


def joined(assignor):
    """What aiokafka passes to the leader: decoded bytes of the wire."""
    return ConsumerProtocolMemberMetadata.decode(assignor.metadata({"lines"}).encode())


def on_the_wire(answer):
    return ConsumerProtocolMemberAssignment.decode(answer.encode())


def subscription_of(assignor):
    return decode_subscription(bytes(assignor.metadata({"lines"}).user_data))


def test_a_rebalance_of_two_through_the_clients_own_bytes():
    (leader, _, seen), (follower, _, _) = made(number=1), made(number=2)
    answers = leader.assign(cluster(lines=4), {"m1": joined(leader), "m2": joined(follower)})
    leader.on_assignment(on_the_wire(answers["m1"]))
    follower.on_assignment(on_the_wire(answers["m2"]))
    assert sorted([*leader.tasks.active, *follower.tasks.active]) == [
        TaskId(0, p) for p in range(4)
    ]
    assert [type(event) for event in seen] == [
        SubscriptionWritten,
        AnswersDecided,
        AssignmentTaken,
        AnswerHandled,
    ]
    assert seen[-1].generation == seen[-2].generation == 1


def test_the_protocol_fields_that_aiokafka_cannot_write_are_not_promised():
    assignor, _, _ = made()
    metadata = assignor.metadata({"b", "a"})
    # From version 1 on a reader expects owned partitions behind the user data.
    assert metadata.version == 0
    assert list(metadata.subscription) == ["a", "b"]


def test_generation_and_instance_id_are_in_the_native_bytes():
    assignor, coordinator, _ = made(instance="i-1")
    coordinator.generation = 7
    answers = assignor.assign(cluster(lines=2), {"m": joined(assignor)})
    assignor.on_assignment(on_the_wire(answers["m"]))
    native = subscription_of(assignor).native
    assert (native.instance_id, native.owned_generation) == ("i-1", 7)


def test_a_static_member_without_a_process_id_has_the_same_one_after_a_restart():
    ids = {subscription_of(made(process_id=None, instance="i-1")[0]).process_id for _ in range(2)}
    assert len(ids) == 1
    assert subscription_of(made(process_id=None, instance="i-2")[0]).process_id not in ids
    assert subscription_of(made(number=3, instance="i-1")[0]).process_id == UUID(int=3)


def test_tasks_are_revoked_before_the_next_join_and_lost_with_the_membership():
    listener = Listener()
    assignor, coordinator, seen = made(listener=listener)
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    for _ in range(2):
        answers = assignor.assign(cluster(lines=2), {"m": joined(assignor)})
        assignor.on_assignment(on_the_wire(answers["m"]))
    coordinator.generation = -1
    assert not subscription_of(assignor).prev_tasks, "others run them now"
    kinds = ["assigned", "revoked", "assigned", "lost"]
    assert listener.calls == [(kind, tasks) for kind in kinds]
    assert seen[-2] == MembershipLost(active_tasks=tuple(tasks))


def answer(version, common):
    value = Assignment(version=version, commonly_supported_version=common)
    return ConsumerProtocolMemberAssignment(1, [], encode_assignment(value))


def test_an_answer_in_a_lower_version_makes_it_rejoin_at_once():
    assignor, coordinator, _ = made()
    assignor.metadata({"lines"})
    assignor.on_assignment(answer(10, 10))
    assert coordinator.requests == 1
    assert subscription_of(assignor).version == 10


@pytest.mark.usefixtures("clock")
def test_a_follow_up_comes_from_the_loop_and_waits_for_a_running_rebalance(monkeypatch):
    monkeypatch.setattr(followups, "_RETRY_S", 0.0)

    async def work():
        assignor, coordinator, _ = made()
        coordinator._performed_join_prepare = True
        timer = assignor._driver.timer
        timer.schedule(0)
        first = timer._timer
        while timer._timer is first:  # noqa: ASYNC110 a timer has no event
            await asyncio.sleep(0)
        assert coordinator.requests == 0
        coordinator._performed_join_prepare = False
        while not coordinator.requests:  # noqa: ASYNC110 the coordinator has no event
            await asyncio.sleep(0)
        assignor.close()

    asyncio.run(asyncio.wait_for(work(), 120))


def test_nothing_is_raised_whatever_listener_and_observer_do():
    class Broken(TasksListener):
        def on_tasks_assigned(self, active, standby):
            raise ValueError("application bug")

        def task_offsets(self):
            raise ValueError("no offsets today")

    async def work():
        assignor, _, _ = made(listener=Broken())
        assignor._driver.reporter.observer = lambda _: 1 / 0
        assert subscription_of(assignor).version == 11
        assignor.on_assignment(answer(11, 11))
        assignor.on_assignment(ConsumerProtocolMemberAssignment(1, [], b"\x00"))
        assignor.on_assignment(ConsumerProtocolMemberAssignment(1, [], None))
        assert any("application bug" in why for why in assignor.failures)
        assignor.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("bytes_of_answer", "why"),
    [
        (b"", "no answer"),
        (b"\x00\x01\x00", "no assignment"),
        (ConsumerProtocolMemberAssignment(0, [("other", [0])], b"").encode(), "other"),
    ],
)
def test_an_answer_that_would_end_aiokafka_becomes_one_without_anything(bytes_of_answer, why):
    listener = Listener()
    assignor, coordinator, _ = made(listener=listener)
    assignor.metadata({"lines"})
    assignor.metadata({"lines"})  # a second join does not hook twice
    asyncio.run(coordinator._on_join_complete(1, "m", "stream", bytes_of_answer))
    (taken,) = map(ConsumerProtocolMemberAssignment.decode, coordinator.completed)
    assert (taken.partitions(), taken.user_data) == ([], b"")
    assignor.on_assignment(taken)
    (sentence,) = assignor.failures
    assert why in sentence
    assert assignor._driver.timer._timer is not None, "it is asked for again after a back-off"
    assert tuple(assignor.tasks.active) == ()
    assignor.close()


def test_an_answer_that_aiokafka_can_take_reaches_it_unchanged():
    assignor, coordinator, _ = made()
    assignor.metadata({"lines"})
    valid = ConsumerProtocolMemberAssignment(0, [("lines", [0])], b"x").encode()
    asyncio.run(coordinator._on_join_complete(1, "m", "stream", valid))
    assert coordinator.completed == [valid]


def as_a_cooperative_client_writes(member, name):
    """The subscription of a member on another client, with owned partitions."""
    owned = [p for inputs in member.held.active.values() for p in inputs]
    held, member.held = member.held, TasksHeld()
    metadata = ConsumerProtocolMemberMetadata(1, ["lines"], member.subscription()[1]).encode()
    member.held = held
    numbers = b"".join(p.partition.to_bytes(4) for p in owned)
    listed = (1).to_bytes(4) + b"\x00\x05lines" + len(owned).to_bytes(4) + numbers
    return (name, None, metadata + listed)


def test_a_leader_waits_for_what_other_clients_still_own_though_aiokafka_hides_it():
    stateless = Topology().add_source("lines", topics=["lines"])
    assignor, coordinator, _ = made(topology=stateless)
    # As Kafka Streams, which names no stateless task in its own bytes.
    jvm = start("3.9.1", number=5)
    jvm.held = TasksHeld(active={TaskId(0, p): (TopicPartition("lines", p),) for p in range(4)})
    first = ("m1", None, assignor.metadata({"lines"}).encode())
    second = as_a_cooperative_client_writes(jvm, "m2")
    members = asyncio.run(coordinator._perform_assignment(SimpleNamespace(members=[first, second])))
    assert members == [first, second]
    decoded = {
        name: ConsumerProtocolMemberMetadata.decode(metadata) for name, _, metadata in members
    }
    answers = assignor.assign(cluster(lines=4), decoded)
    assert on_the_wire(answers["m1"]).partitions() == []
    assert len(on_the_wire(answers["m2"]).partitions()) == 2


@pytest.mark.parametrize("joined", [None, b"", b"\x00\x01\xff\xff\xff\xff"])
def test_metadata_that_cannot_be_read_names_no_owned_partitions(joined):
    assert owned_in(joined) is None


def test_topics_that_do_not_fit_are_raised_where_aiokafka_expects_it():
    topology = (
        Topology()
        .add_source("s", topics=["a", "b"])
        .add_processor("p", parents=["s"])
        .copartition("a", "b")
    )
    assignor, _, _ = made(topology=topology)
    with pytest.raises(CopartitionMismatch):
        assignor.assign(cluster(a=1, b=2), {"m": joined(assignor)})


def test_attach_refuses_other_clients_and_a_list_of_assignors():
    assignor = StreamsAssignor(TOPOLOGY)
    with pytest.raises(TypeError, match="made with a group_id"):
        assignor.attach(SimpleNamespace())
    with pytest.raises(TypeError, match="made with a group_id"):
        assignor.attach(consumer_of(assignor, group_id=None))
    with pytest.raises(ConfigError, match="2 assignors"):
        assignor.attach(consumer_of(assignor, object()))


def test_cooperative_is_refused_since_aiokafka_is_eager():
    with pytest.raises(ConfigError, match="eagerly"):
        made(rebalance_protocol="cooperative")


def test_a_consumer_that_has_not_started_is_no_failure():
    assignor = StreamsAssignor(TOPOLOGY)
    consumer = consumer_of(assignor)
    consumer._coordinator = None
    assignor.attach(consumer)
    assert assignor._driver.port.is_rebalancing()
    assignor._driver.port.request_rejoin()
    assignor.on_assignment(answer(11, 11))
    assert assignor.failures == []
