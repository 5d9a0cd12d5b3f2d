"""Ways to hold the kafka-python adapter wrong: each is an error at once, in one sentence."""

import math
import threading
from contextlib import ExitStack, contextmanager

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from assignor import ConfigError, RunningTasks
from assignor.adapters.kafka_python import (
    StreamsAssignor,
    commit_next,
    polled,
    run_tasks,
    streams_consumer,
)
from assignor.embedding import MemberStopped, TaskStores
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.embedding.clusters import until
from tests.assignor.rebalance.groups import TOPOLOGY

PARTITIONS = 3  # one for each member of the largest group here
GROUP = "app"


@pytest.fixture(scope="module")
def servers(clock):
    with running_broker(BrokerConfig(topics={"lines": PARTITIONS})) as broker:
        yield broker.bootstrap_servers


@contextmanager
def consumer(servers, *assignors, group_id=GROUP, **settings):
    made = KafkaConsumer(
        "lines",
        bootstrap_servers=servers,
        group_id=group_id,
        partition_assignment_strategy=list(assignors),
        heartbeat_interval_ms=100,
        **settings,
    )
    try:
        yield made
    finally:
        made.close()
        for assignor in assignors:
            if isinstance(assignor, StreamsAssignor):
                assignor.close()


def poll_until(consumers, condition):
    until(condition, lambda: [each.poll(timeout_ms=100) for each in consumers])


def is_one_sentence(text):
    return text.count(". ") == 0 and len(text) < 250


def test_a_forgotten_attach_is_raised_by_the_first_poll(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with (
        consumer(servers, assignor) as member,
        pytest.raises(ConfigError, match=r"attach\(consumer\) was not called") as raised,
    ):
        poll_until([member], lambda: False)
    assert is_one_sentence(str(raised.value))


def test_a_forgotten_attach_is_raised_by_polled_even_without_a_group(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with (
        consumer(servers, assignor, group_id=None) as member,
        pytest.raises(ConfigError, match=r"attach\(consumer\) was not called"),
    ):
        next(polled(member, assignor))


def test_a_consumer_without_a_group_is_refused_by_attach(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with (
        consumer(servers, assignor, group_id=None) as member,
        pytest.raises(TypeError, match="group_id=None") as raised,
    ):
        assignor.attach(member)
    assert is_one_sentence(str(raised.value))


def test_an_application_id_unlike_the_group_id_is_refused_by_attach(servers):
    assignor = StreamsAssignor(TOPOLOGY, application_id="other")
    with (
        consumer(servers, assignor) as member,
        pytest.raises(ConfigError, match="application_id='other' is unlike group_id='app'"),
    ):
        assignor.attach(member)


def test_the_application_id_is_the_group_id(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with consumer(servers, assignor, group_id="of-the-group") as member:
        assignor.attach(member)
        poll_until([member], lambda: assignor.tasks.active)
        assert "of-the-group-counts-changelog" in member.topics()


@pytest.mark.parametrize("other", [RangePartitionAssignor, RangePartitionAssignor()])
def test_another_assignor_in_front_is_refused_by_attach(servers, other):
    assignor = StreamsAssignor(TOPOLOGY)
    with (
        consumer(servers, other, assignor) as member,
        pytest.raises(ConfigError, match="RangePartitionAssignor comes before") as raised,
    ):
        assignor.attach(member)
    assert is_one_sentence(str(raised.value))


def test_an_assignor_in_two_consumers_is_refused_by_the_second_attach(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with consumer(servers, assignor) as first, consumer(servers, assignor) as second:
        assignor.attach(first)
        with pytest.raises(ConfigError, match="attached to another consumer") as raised:
            assignor.attach(second)
    assert is_one_sentence(str(raised.value))


def test_an_assignor_in_two_consumers_is_refused_by_the_second_ones_first_poll(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with consumer(servers, assignor) as first, consumer(servers, assignor) as second:
        assignor.attach(first)
        poll_until([first], lambda: assignor.tasks.active)
        with pytest.raises(ConfigError, match="attached to another consumer"):
            poll_until([second], lambda: False)
        with pytest.raises(ConfigError, match="attached to another consumer"):
            next(polled(second, assignor))
        assert len(assignor.tasks.active) == PARTITIONS
        first.poll(timeout_ms=100)


def test_an_assignor_that_the_consumer_was_not_made_with_is_refused_by_attach(servers):
    listed, other = StreamsAssignor(TOPOLOGY), StreamsAssignor(TOPOLOGY)
    with (
        consumer(servers, listed) as member,
        pytest.raises(ConfigError, match="was made with StreamsAssignor, not with this instance"),
    ):
        other.attach(member)


def test_a_second_attach_of_the_same_consumer_changes_nothing(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with consumer(servers, assignor) as member:
        assignor.attach(member)
        membership, timer = assignor._driver, assignor._driver.timer
        assignor.attach(member)
        assert assignor._driver is membership
        assert membership.timer is timer
        poll_until([member], lambda: assignor.tasks.active)


def test_what_is_no_consumer_is_refused_by_attach_and_so_is_a_closed_assignor(servers):
    assignor = StreamsAssignor(TOPOLOGY)
    with pytest.raises(TypeError, match="NoneType has no group coordinator"):
        assignor.attach(None)
    with consumer(servers, assignor) as member:
        assignor.close()
        with pytest.raises(ConfigError, match="this StreamsAssignor is closed; create another"):
            assignor.attach(member)


def test_polled_refuses_what_is_no_consumer_and_no_event(servers):
    with pytest.raises(ConfigError, match="int is not a KafkaConsumer"):
        next(polled(5))
    with (
        streams_consumer(TOPOLOGY, group_id=GROUP, bootstrap_servers=servers) as member,
        pytest.raises(ConfigError, match=r"stop=5 is refused; give a threading\.Event"),
    ):
        next(polled(member, stop=5))


@pytest.mark.parametrize("timeout_ms", [math.nan, math.inf, -1, None, "1", True])
def test_polled_refuses_timeouts_that_would_wait_for_ever_or_are_no_number(servers, timeout_ms):
    with (
        streams_consumer(TOPOLOGY, group_id=GROUP, bootstrap_servers=servers) as member,
        pytest.raises(ConfigError, match=r"timeout_ms=.* is refused; give a number, 0 or more"),
    ):
        next(polled(member, timeout_ms=timeout_ms))


def test_a_consumer_of_stock_assignors_is_refused_by_polled(servers):
    with (
        consumer(servers, RoundRobinPartitionAssignor) as member,
        pytest.raises(ConfigError, match="has no StreamsAssignor"),
    ):
        next(polled(member))


def test_a_closed_consumer_ends_polled_at_once(servers):
    closed = streams_consumer(TOPOLOGY, group_id=GROUP, bootstrap_servers=servers)
    closed.close()
    stop = threading.Event()
    timer = threading.Timer(10, stop.set)
    timer.start()
    with pytest.raises(MemberStopped, match="this consumer is closed; make another") as raised:
        list(polled(closed, stop=stop))
    timer.cancel()
    assert is_one_sentence(str(raised.value))


class Calls(RunningTasks):
    """Keeps the tasks of each call."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def on_tasks_assigned(self, active, standby):
        super().on_tasks_assigned(active, standby)
        self.calls.append(("assigned", len(active)))

    def on_tasks_revoked(self, active, standby):
        super().on_tasks_revoked(active, standby)
        self.calls.append(("revoked", len(active)))


@contextmanager
def stock_member(servers):
    """A member with kafka-python's own assignor, polled on a thread; yields its assignment.

    On a thread, since kafka-python discards an answer that arrives between two polls.
    """
    ended = threading.Event()
    with consumer(servers, RangePartitionAssignor, group_id="migrating") as member:

        def run():
            while not ended.is_set():
                member.poll(timeout_ms=1000)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield member.assignment
        finally:
            ended.set()
            thread.join()


def test_a_migration_runs_while_another_assignor_is_chosen_and_the_log_says_so_once(
    servers, caplog
):
    listener = Calls()
    with ExitStack() as resources:
        old = resources.enter_context(stock_member(servers))
        until(old)
        migrating = resources.enter_context(
            streams_consumer(
                TOPOLOGY,
                group_id="migrating",
                bootstrap_servers=servers,
                listener=listener,
                fallback_assignors=[RangePartitionAssignor],
                heartbeat_interval_ms=100,
            )
        )
        poll_until([migrating], lambda: migrating.assignment() and old())
        with stock_member(servers) as older:
            poll_until([migrating], older)
        poll_until([migrating], lambda: len(migrating.assignment()) + len(old()) == PARTITIONS)
        assert listener.calls == []
        lines = [line for line in caplog.messages if "the group uses assignor range" in line]
        assert len(lines) == 1
        assert is_one_sentence(lines[0])


def test_tasks_run_once_every_member_has_migrated_and_end_when_one_goes_back(servers):
    listener = Calls()
    with streams_consumer(
        TOPOLOGY,
        group_id="migrating",
        bootstrap_servers=servers,
        listener=listener,
        fallback_assignors=[RangePartitionAssignor],
        heartbeat_interval_ms=100,
    ) as migrated:
        poll_until([migrated], lambda: len(migrated.assignor.tasks.active) == PARTITIONS)
        with stock_member(servers) as back:
            poll_until(
                [migrated],
                lambda: len(migrated.assignment()) + len(back()) == PARTITIONS and back(),
            )
            assert not migrated.assignor.tasks.active
            # First until the answer, then for good: it gives them to the other assignor.
            assert listener.calls[-2:] == [("revoked", PARTITIONS), ("revoked", 0)]
        poll_until([migrated], lambda: len(migrated.assignor.tasks.active) == PARTITIONS)


def test_run_tasks_refuses_state_stores_that_would_get_no_task(servers, tmp_path):
    def stores(group_id, **options):
        made = TaskStores(TOPOLOGY, [], application_id=group_id, access=None, **options)
        stack.callback(made._local.close)
        return made

    with ExitStack() as stack:
        followed, other, kept = stores(GROUP), stores("other"), stores(GROUP, state_dir=tmp_path)
        for listener, given, why in (
            (RunningTasks(), followed, "not the listener of the consumer"),
            (None, followed, "not the listener of the consumer"),
            (other, other, "application_id='other', and the consumer has group id 'app'"),
            (kept, kept, "and the consumer has none; give both the same"),
        ):
            member = streams_consumer(
                TOPOLOGY, group_id=GROUP, bootstrap_servers=servers, listener=listener
            )
            stack.callback(member.close)
            with pytest.raises(ConfigError, match=why):
                run_tasks(member, given, print)


def test_commit_next_of_a_closed_consumer_says_so(servers):
    member = streams_consumer(TOPOLOGY, group_id=GROUP, bootstrap_servers=servers)
    member.close()
    with pytest.raises(MemberStopped, match="this consumer is closed; make another"):
        commit_next(member)


@pytest.mark.parametrize("call", [commit_next, lambda given: run_tasks(given, None, print)])
def test_a_consumer_of_another_client_is_refused_with_its_own_adapter(call):
    with pytest.raises(ConfigError, match=r"object is not a KafkaConsumer; .*confluent"):
        call(object())
