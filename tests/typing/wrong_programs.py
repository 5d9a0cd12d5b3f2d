"""Programs that mypy must refuse.

Above each refused statement is the code of the error, and a part of its text.
"""

from pathlib import Path

from assignor import RunningTasks, Topology
from assignor.adapters.aiokafka import StreamsAssignor as AsyncAssignor
from assignor.adapters.aiokafka import streams_consumer as async_consumer
from assignor.adapters.confluent import Consumer
from assignor.adapters.kafka_python import (
    KafkaChangelogs,
    StreamsApplication,
    StreamsAssignor,
    commit_next,
    polled,
    streams_consumer,
)

TOPOLOGY = Topology().add_source("words", topics=["words"])
HOST = "localhost:9092"


class App:
    """Is no listener."""


def names() -> None:
    """No option has this name."""
    # refused: call-arg: "num_standby_replica"
    StreamsAssignor(TOPOLOGY, num_standby_replica=1)
    # refused: call-arg: "listner"
    StreamsAssignor(TOPOLOGY, listner=RunningTasks())
    # refused: call-arg: "state_directory"
    AsyncAssignor(TOPOLOGY, state_directory="state")
    # refused: call-arg: "num_standby_replica"
    streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST, num_standby_replica=1)
    # refused: call-arg: "auto_offset_rest"
    streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST, auto_offset_rest="latest")
    # refused: call-arg: "bootstrap_server"
    KafkaChangelogs(bootstrap_server=HOST)
    # refused: call-arg: "listener"
    StreamsApplication(
        TOPOLOGY, print, group_id="g", bootstrap_servers=HOST, listener=RunningTasks()
    )
    # refused: call-arg: "num_standby_replica"
    Consumer({"group.id": "g"}, topology=TOPOLOGY, num_standby_replica=1)
    # refused: call-arg: "fallback_assignors"
    async_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST, fallback_assignors=[])


def values() -> None:
    """No option has this value."""
    # refused: arg-type: "rebalance_protocol"
    StreamsAssignor(TOPOLOGY, rebalance_protocol="coperative")
    # refused: arg-type: "start_version"
    StreamsAssignor(TOPOLOGY, start_version="newest")
    # refused: arg-type: "auto_offset_reset"
    streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST, auto_offset_reset="first")
    # refused: arg-type: "rebalance_protocol"
    async_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST, rebalance_protocol="coperative")


def kinds() -> None:
    """The value is of another type."""
    # refused: arg-type: "num_standby_replicas"
    StreamsAssignor(TOPOLOGY, num_standby_replicas="1")
    # refused: arg-type: "listener"
    StreamsAssignor(TOPOLOGY, listener=App())
    # refused: arg-type: "listener"
    StreamsAssignor(TOPOLOGY, listener=RunningTasks)
    # refused: arg-type: "application_id"
    StreamsAssignor(TOPOLOGY, application_id=7)
    # refused: arg-type: "hooks"
    AsyncAssignor(TOPOLOGY, hooks=RunningTasks())
    # refused: arg-type: "state_dir"
    AsyncAssignor(TOPOLOGY, state_dir=[Path("state")])
    # refused: arg-type: expected "Topology | None"
    StreamsAssignor({"words": 4})
    # refused: arg-type: expected "Topology | None"
    streams_consumer({"words": 4}, group_id="g", bootstrap_servers=HOST)
    # refused: arg-type: "group_id"
    streams_consumer(TOPOLOGY, group_id=None, bootstrap_servers=HOST)
    # refused: arg-type: "bootstrap_servers"
    streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=9092)
    # refused: arg-type: "session_timeout_ms"
    streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST, session_timeout_ms="6 s")


def missing() -> None:
    """An argument is missing."""
    # A topology can be missing, since `topologies` may be given: refused at run time.
    # refused: call-arg: "group_id"
    streams_consumer(TOPOLOGY, bootstrap_servers=HOST)
    # refused: call-arg: "bootstrap_servers"
    async_consumer(TOPOLOGY, group_id="g")


def loops() -> None:
    """The consumer and its loop."""
    consumer = streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=HOST)
    # refused: attr-defined: "task"
    print(consumer.assignor.task)
    # refused: arg-type: "RunningTasks"
    polled(consumer, RunningTasks())
    # refused: call-arg: "timeout"
    polled(consumer, timeout="1 s")
    reader = Consumer({"group.id": "g"}, topology=TOPOLOGY)
    # refused: call-arg: Too many arguments for "list_topics"
    reader.list_topics("words", 6, 7)
    # refused: arg-type: "list_topics"
    reader.list_topics(5)
    # refused: arg-type: "commit_next"
    commit_next(consumer, [1])
