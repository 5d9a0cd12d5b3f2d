"""Two processes of four threads each: the one that joins gets half of the tasks."""

import threading
import time
from contextlib import ExitStack
from uuid import UUID

import pytest
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.polling import polled
from assignor.embedding import RunningTasks
from encoding import TaskId
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

THREADS, LIMIT_S = 4, 180
TOPOLOGY = (
    Topology()
    .add_source("orders", topics=["orders"])
    .add_processor("count", parents=["orders"])
    .add_state_store("counts", processors=["count"])
)


class Thread:
    """A consumer that shares its process id with others, as threads of a Kafka Streams process."""

    def __init__(self, broker, process, *, strategy, protocol):
        self.running, self.stop = RunningTasks(tell=lambda _: None), threading.Event()
        self.assignor = StreamsAssignor(
            TOPOLOGY,
            application_id="app",
            process_id=UUID(int=process),
            strategy=strategy,
            rebalance_protocol=protocol,
            listener=self.running,
        )
        self.consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="app",
            partition_assignment_strategy=[self.assignor],
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
            metrics_enabled=False,
        )
        self.assignor.attach(self.consumer)
        self.thread = threading.Thread(target=self._poll, daemon=True)
        self.thread.start()

    def _poll(self):
        for _ in polled(self.consumer, self.assignor, stop=self.stop):
            pass

    def close(self):
        self.stop.set()
        self.thread.join(LIMIT_S)
        self.consumer.close(autocommit=False)
        self.assignor.close()


def tasks_of(processes):
    """Number of active tasks of each thread of each process."""
    return [[len(thread.running.active) for thread in threads] for threads in processes]


def wait_for(processes, total, found):
    """Wait until every task runs once, and `found` is true for the counts."""
    end = time.monotonic() + LIMIT_S
    every = [TaskId(0, partition) for partition in range(total)]
    while True:
        running = [
            task for threads in processes for thread in threads for task in thread.running.active
        ]
        counts = tasks_of(processes)
        if sorted(running) == every and found(counts):
            return
        assert time.monotonic() < end, f"in {LIMIT_S} s: {counts}"
        time.sleep(0.05)


@pytest.mark.nightly(
    "8 s each; tests/assignor/placement has the shares of each strategy in every run",
    but=("4-sticky-cooperative",),
)
@pytest.mark.parametrize(
    ("total", "strategy", "protocol"),
    [
        (8, "high_availability", "eager"),
        (8, "high_availability", "cooperative"),
        (4, "high_availability", "eager"),
        (4, "sticky", "cooperative"),
    ],
)
def test_a_second_process_gets_half_of_the_tasks(total, strategy, protocol):
    topics = BrokerConfig(topics={"orders": total})
    with running_broker(topics) as broker, ExitStack() as stack:

        def process(number):
            threads = []
            for _ in range(THREADS):
                thread = Thread(broker, number, strategy=strategy, protocol=protocol)
                stack.callback(thread.close)
                threads.append(thread)
            return threads

        first = process(1)
        wait_for([first], total, lambda counts: counts == [[total // THREADS] * THREADS])
        both = [first, process(2)]
        half = total // 2
        wait_for(
            both,
            total,
            lambda counts: (
                [sum(own) for own in counts] == [half, half]
                and all(max(own) - min(own) <= 1 for own in counts)
            ),
        )
