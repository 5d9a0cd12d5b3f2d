"""Programs that mypy must refuse: each marked line, with the error's code and a part of its text."""

from pathlib import Path

from assignor import RunningTasks, Topology
from assignor.adapters.aiokafka import StreamsAssignor as AsyncAssignor
from assignor.adapters.aiokafka import streams_consumer as async_consumer
from assignor.adapters.kafka_python import StreamsAssignor, commit_next, polled, streams_consumer

TOPOLOGY = Topology().add_source("words", topics=["words"])
SERVERS = "localhost:9092"


class App:
    """Is no listener."""


def names() -> None:
    """No option has this name."""
    StreamsAssignor(TOPOLOGY, num_standby_replica=1)  # refused: call-arg: "num_standby_replica"
    StreamsAssignor(TOPOLOGY, listner=RunningTasks())  # refused: call-arg: "listner"
    AsyncAssignor(TOPOLOGY, state_directory="state")  # refused: call-arg: "state_directory"
    streams_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=SERVERS, num_standby_replica=1
    )  # refused: call-arg: "num_standby_replica"
    streams_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=SERVERS, auto_offset_rest="latest"
    )  # refused: call-arg: "auto_offset_rest"
    async_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=SERVERS, fallback_assignors=[]
    )  # refused: call-arg: "fallback_assignors"


def values() -> None:
    """No option has this value."""
    StreamsAssignor(
        TOPOLOGY, rebalance_protocol="coperative"
    )  # refused: arg-type: "rebalance_protocol"
    StreamsAssignor(TOPOLOGY, start_version="newest")  # refused: arg-type: "start_version"
    streams_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=SERVERS, auto_offset_reset="first"
    )  # refused: arg-type: "auto_offset_reset"
    async_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=SERVERS, rebalance_protocol="cooperativ"
    )  # refused: arg-type: "rebalance_protocol"


def kinds() -> None:
    """The value is of another type."""
    StreamsAssignor(TOPOLOGY, num_standby_replicas="1")  # refused: arg-type: "num_standby_replicas"
    StreamsAssignor(TOPOLOGY, listener=App())  # refused: arg-type: "listener"
    StreamsAssignor(TOPOLOGY, listener=RunningTasks)  # refused: arg-type: "listener"
    StreamsAssignor(TOPOLOGY, application_id=7)  # refused: arg-type: "application_id"
    AsyncAssignor(TOPOLOGY, hooks=RunningTasks())  # refused: arg-type: "hooks"
    AsyncAssignor(TOPOLOGY, state_dir=[Path("state")])  # refused: arg-type: "state_dir"
    StreamsAssignor({"words": 4})  # refused: arg-type: "Topology"
    streams_consumer(
        TOPOLOGY, group_id=None, bootstrap_servers=SERVERS
    )  # refused: arg-type: "group_id"
    streams_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=9092
    )  # refused: arg-type: "bootstrap_servers"
    streams_consumer(
        TOPOLOGY, group_id="g", bootstrap_servers=SERVERS, session_timeout_ms="6 s"
    )  # refused: arg-type: "session_timeout_ms"


def missing() -> None:
    """An argument is missing."""
    StreamsAssignor()  # refused: call-arg: "topology"
    StreamsAssignor(listener=RunningTasks())  # refused: call-arg: "topology"
    streams_consumer(TOPOLOGY, bootstrap_servers=SERVERS)  # refused: call-arg: "group_id"
    async_consumer(TOPOLOGY, group_id="g")  # refused: call-arg: "bootstrap_servers"


def loops() -> None:
    """The consumer and its loop."""
    consumer = streams_consumer(TOPOLOGY, group_id="g", bootstrap_servers=SERVERS)
    consumer.assignor.task  # refused: attr-defined: "task"
    polled(consumer, RunningTasks())  # refused: arg-type: "RunningTasks"
    polled(consumer, timeout="1 s")  # refused: call-arg: "timeout"
    commit_next(consumer, [1])  # refused: arg-type: "commit_next"
