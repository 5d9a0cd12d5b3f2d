"""Probes, metrics and queries of a member whose application has its own loop, with every client."""

import asyncio
import json
import socket
import threading
from contextlib import closing
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry

from assignor import TaskStores
from assignor.adapters import aiokafka, confluent, kafka_python
from assignor.embedding.serving import ServedMember
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LIMIT_S,
    confluent_config,
    filled,
    process_with_aiokafka,
    until,
)

pytestmark = pytest.mark.usefixtures("clock")

RECORDS = 8


def free_endpoint():
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


ENDPOINT = free_endpoint()
SETTINGS = {"session_timeout_ms": 2000, "heartbeat_interval_ms": 200, "client_id": "one"}


def count(_, state):
    state[COUNTS].put("all", (state[COUNTS].get("all") or 0) + 1)


def settings(broker, stores):
    servers = {"group_id": GROUP, "bootstrap_servers": broker.bootstrap_servers}
    return {**servers, **SETTINGS, "listener": stores, "endpoint": ENDPOINT}


def run_kafka_python(broker, stores, serve, stop):
    options = settings(broker, stores)
    with (
        kafka_python.streams_consumer(COUNTING, **options, enable_auto_commit=False) as consumer,
        ServedMember(consumer.assignor, stores) as served,
    ):
        serve(served)
        kafka_python.run_tasks(consumer, stores, count, stop=stop)


def run_confluent(broker, stores, serve, stop):
    config = confluent_config(broker, **SETTINGS)
    with (
        confluent.Consumer(
            config, topology=COUNTING, listener=stores, endpoint=ENDPOINT
        ) as consumer,
        ServedMember(consumer.assignor, stores) as served,
    ):
        serve(served)
        confluent.run_tasks(consumer, stores, count, stop=stop)


def run_aiokafka(broker, stores, serve, stop):
    async def run():
        async with aiokafka.streams_consumer(COUNTING, **settings(broker, stores)) as consumer:
            with ServedMember(consumer.assignor, stores) as served:
                serve(served)
                await process_with_aiokafka(consumer, stores, count, stop)

    asyncio.run(run())


def get(endpoint, path):
    connection = HTTPConnection(endpoint, timeout=LIMIT_S)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


@pytest.mark.parametrize("run", [run_kafka_python, run_confluent, run_aiokafka])
def test_a_loop_of_any_client_is_served_as_an_application(run):
    probes = free_endpoint()
    registry, members, errors, stop = CollectorRegistry(), [], [], threading.Event()

    def serve(served):
        assert served.health().ended == "the loop that processes records has not begun"
        served.serve_probes(probes, registry=registry)
        served.serve_queries(COUNTS, lambda _, state: json.dumps(state[COUNTS].get("all")).encode())
        members.append(served)

    def go():
        try:
            run(broker, stores, serve, stop)
        except BaseException as error:  # noqa: BLE001 the test raises it
            errors.append(error)

    with filled(RECORDS) as broker:
        access = kafka_python.KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
        with TaskStores(COUNTING, [COUNTS], application_id=GROUP, access=access) as stores:
            thread = threading.Thread(target=go)
            thread.start()
            try:
                until(
                    lambda: (
                        errors
                        or (
                            members
                            and members[0].ready()
                            and stores.work.records.total() == RECORDS
                        )
                    )
                )
                assert [get(probes, path)[0] for path in ("/live", "/ready")] == [200, 200]
                # A record counts before the changes of its batch are applied.
                until(lambda: get(ENDPOINT, "/all") == (200, str(RECORDS)))
                text = get(probes, "/metrics")[1]
                assert f'_ready{{client_id="one",group="{GROUP}"}} 1.0' in text
                assert members[0]._member.poll_limit_s == 300
                port = int(broker.bootstrap_servers[0].rpartition(":")[2])
                broker.stop_node(1)
                until(lambda: "answered the heartbeats" in "".join(members[0].health().problems))
                assert (get(probes, "/live")[0], get(probes, "/ready")[0]) == (200, 503)
                broker.start_node(1, port=port)
                until(members[0].ready)
            finally:
                stop.set()
                thread.join(LIMIT_S)
    assert not errors
    assert not list(registry.collect())
