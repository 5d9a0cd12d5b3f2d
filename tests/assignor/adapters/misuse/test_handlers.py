"""Functions that process records and would run nothing, and events that end no loop.

Each is an error before the first poll.
"""

import asyncio
import multiprocessing
import threading
from functools import partial, wraps
from unittest.mock import MagicMock, Mock, create_autospec

import pytest
from kafka import KafkaConsumer

from assignor import ConfigError, RunningTasks
from assignor.adapters.confluent import run_tasks as run_confluent
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.adapters.kafka_python import run_tasks as run_kafka_python
from assignor.adapters.poll_arguments import stop_event
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.rebalance.groups import TOPOLOGY


async def delayed(record, state):
    """Would run if it was awaited."""


def generated(record, state):
    yield


async def generated_later(record, state):
    yield


def delayed_by_name(name, record, state):
    return delayed(record, state)


class Delayed:
    """An object with an async `__call__`, and an async method."""

    async def __call__(self, record, state):
        """Would run if it was awaited."""

    async def handle(self, record, state):
        """Would run if it was awaited."""


DEFERRED = [
    delayed,
    generated,
    generated_later,
    Delayed(),
    Delayed().handle,
    partial(delayed),
    partial(partial(Delayed())),
]


@pytest.mark.parametrize("run_tasks", [run_kafka_python, run_confluent])
@pytest.mark.parametrize("handle", DEFERRED)
def test_run_tasks_refuses_async_functions_and_generators(run_tasks, handle):
    with pytest.raises(ConfigError, match="its task, written with def and without yield: its body"):
        run_tasks(object(), None, handle)


@pytest.mark.parametrize("run_tasks", [run_kafka_python, run_confluent])
@pytest.mark.parametrize("handle", [None, lambda record: record, "count"])
def test_run_tasks_refuses_what_no_record_and_state_can_be_given(run_tasks, handle):
    with pytest.raises(ConfigError, match=r"give a function of a record and the stores"):
        run_tasks(object(), None, handle)


@pytest.mark.parametrize("run_tasks", [run_kafka_python, run_confluent])
@pytest.mark.parametrize(
    "stop", [False, 0, [], "", 5, threading.Event, asyncio.Event(), threading.Condition()]
)
def test_run_tasks_refuses_what_no_thread_can_wait_for(run_tasks, stop):
    with pytest.raises(ConfigError, match=r"stop=.* is refused; give a threading\.Event"):
        run_tasks(object(), None, print, stop=stop)


def test_events_of_threads_and_processes_end_a_loop():
    for event in (threading.Event(), multiprocessing.get_context("spawn").Event()):
        assert stop_event(event) is event


@wraps(delayed_by_name)
def with_a_name(record, state):
    return delayed_by_name("name", record, state)


def plain(record, state):
    """Processes nothing."""


class Runner(partial):
    """A partial function that runs a coroutine to its end."""

    def __call__(self, *arguments):
        asyncio.run(super().__call__(*arguments))


RUNNING = [
    print,
    delayed_by_name.__get__("name"),
    partial(print, 1),
    with_a_name,
    Runner(delayed),
    *(kind(spec=plain) for kind in (Mock, MagicMock)),
    create_autospec(plain),
]


@pytest.mark.parametrize("handle", RUNNING)
def test_functions_that_run_get_as_far_as_the_consumer(handle):
    with pytest.raises(ConfigError, match="object is not a KafkaConsumer"):
        run_kafka_python(object(), None, handle)


def test_what_is_told_assignments_has_to_run_too():
    async def tell(sentence):
        """Would run if it was awaited."""

    with pytest.raises(ConfigError, match="a function of a sentence, written with def"):
        RunningTasks(tell)


@pytest.mark.usefixtures("clock")
def test_a_function_that_processes_records_may_not_close_the_consumer():
    tasks = RunningTasks()
    assignor = StreamsAssignor(TOPOLOGY, listener=tasks)
    with running_broker(BrokerConfig(topics={"lines": 1})) as broker:
        member = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id="app",
            partition_assignment_strategy=[assignor],
        )
        assignor.attach(member)
        with tasks.working(), pytest.raises(RuntimeError, match="set the event that stops the lo"):
            member.close()
        assert not member._closed
        member.close()
        assignor.close()
