"""Health, readiness, probes and metrics of an application: restored, stopped, stuck, ended."""

import json
import logging
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection

import pytest
from kafka import KafkaConsumer, KafkaProducer
from prometheus_client import CollectorRegistry

from assignor import (
    JSON,
    TEXT,
    BadRecordAction,
    ConfigError,
    DeadLetter,
    RebalanceHook,
    SqliteStore,
    Topology,
)
from assignor.adapters.kafka_python import StreamsApplication
from encoding import TaskId
from system_tests.broker import BrokerConfig, running_broker
from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.usefixtures("clock")
LIMIT_S = 120
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)
TOPOLOGY = (
    Topology()
    .add_source("s", topics=["in"])
    .add_processor("p", parents=["s"])
    .add_state_store("counts", processors=["p"])
)
RECORDS = 20
CHANGELOG = "app-counts-changelog"
READS = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 60_000}


def count(record, state):
    if record.value == b"poison":
        raise ValueError("not understood")
    key = str(record.offset % 5)
    state[COUNTS].put(key, (state[COUNTS].get(key) or 0) + 1)


def until(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"in": 2})) as running:
        write(running, [b"x"] * RECORDS)
        yield running


def write(broker, values):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for value in values:
            for partition in range(2):
                producer.send("in", value, partition=partition)


def application(broker, state_dir, handle=count, **options):
    settings = {
        "group_id": "app",
        "client_id": "one",
        "bootstrap_servers": broker.bootstrap_servers,
        "state_dir": state_dir,
        "session_timeout_ms": 60_000,
        "heartbeat_interval_ms": 200,
    }
    return StreamsApplication(TOPOLOGY, handle, stores=[COUNTS], **{**settings, **options})


@contextmanager
def running(app):
    stop, errors = threading.Event(), []

    def run():
        try:
            app.run(stop)
        except Exception as error:  # noqa: BLE001 the test looks at it
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        stop.set()
        thread.join(LIMIT_S)


def free_endpoint():
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def get(endpoint, path):
    connection = HTTPConnection(endpoint, timeout=LIMIT_S)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def sample(endpoint, name):
    _, text = get(endpoint, "/metrics")
    rows = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
    return {row.rpartition(" ")[0].partition("{")[2][:-1]: float(row.split()[-1]) for row in rows}


def test_a_member_is_ready_when_all_of_its_tasks_run(broker, tmp_path):
    registry, endpoint = CollectorRegistry(), free_endpoint()
    with application(broker, tmp_path) as app:
        app.serve_probes(endpoint, registry=registry)
        assert (app.ready(), app.health().has_joined) == (False, False)
        assert get(endpoint, "/live")[0] == 503  # `run` was not called
        with running(app):
            until(lambda: app.stores.work.records.total() == 2 * RECORDS)
            until(app.ready)
            assert [get(endpoint, path)[0] for path in ("/live", "/ready", "/health")] == [200] * 3
            found = json.loads(get(endpoint, "/health")[1])
            tasks = ["0_0", "0_1"]
            assert found == {
                "alive": True,
                "ready": True,
                "joined": True,
                "problems": [],
                "active": tasks,
                "running": tasks,
                "left": {},
            }
            who = 'client_id="one",group="app"'
            assert sample(endpoint, "streams_application_records_total") == {
                f'{who},task="{task}"': RECORDS for task in tasks
            }
            assert sample(endpoint, "streams_application_tasks")[f'{who},state="running"'] == 2
            assert sample(endpoint, "streams_application_ready") == {who: 1}
            assert sample(endpoint, "streams_application_commits_total")[who] >= 1
            assert get(endpoint, "/other")[0] == 404
        status, body = get(endpoint, "/live")
        assert (status, json.loads(body)["problems"]) == (503, ["it was stopped"])
    assert not list(registry.collect())


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_a_member_is_not_ready_before_it_has_its_first_tasks(broker, tmp_path, protocol):
    """The first answer gives none: the leader knows no topics yet, or an owner gives up a task."""

    class Looking(RebalanceHook):
        def on_rebalance_end(self, end):
            if not end.active_tasks:
                empty.append((app.stores.active, app.ready()))

    empty, options = [], {"rebalance_protocol": protocol, "hooks": [Looking()]}
    with ExitStack() as stack:
        for name in ("one", "two"):
            app = stack.enter_context(
                application(broker, tmp_path / name, client_id=name, **options)
            )
            stack.enter_context(running(app))
            until(app.ready)
            assert app.stores.active
    assert {*empty} == {(frozenset(), False)}


def test_a_restore_shows_how_many_records_are_left(broker, tmp_path):
    with application(broker, tmp_path / "one") as app, running(app):
        until(lambda: app.stores.work.records.total() == 2 * RECORDS)
    with application(broker, tmp_path / "two") as app:
        seen, read = [], app.stores._access.read

        def slowly(stores, **options):
            seen.append(app.health())
            return read(stores, **options)

        app.stores._access.read = slowly
        with running(app):
            until(app.ready)
    restoring = [each for each in seen if each.active - each.running]
    assert restoring
    assert not any(each.is_ready for each in restoring)
    assert all(each.is_alive for each in restoring)
    assert {TaskId(0, 0), TaskId(0, 1)} in [set(each.left) for each in restoring]


def test_a_standby_is_ready_and_says_how_far_it_is_behind(broker, tmp_path):
    options = {"num_standby_replicas": 1}
    with (
        application(broker, tmp_path / "one", **options) as first,
        application(broker, tmp_path / "two", client_id="two", **options) as second,
        running(first),
        running(second),
    ):
        until(
            lambda: all(len(app.health().running) == 1 and app.ready() for app in (first, second))
        )
        until(lambda: all([*app.health().left.values()] == [0] for app in (first, second)))
        assert first.health().left.keys() == second.health().running


def test_an_error_of_the_function_ends_it_and_is_the_reason(broker, tmp_path):
    write(broker, [b"poison"])
    with application(broker, tmp_path) as app, running(app) as errors:
        until(lambda: errors)
        health = app.health()
        assert (health.is_alive, health.ended) == (False, "ValueError: not understood")
        assert not app.ready()


def test_bad_records_are_counted(broker, tmp_path):
    write(broker, [b"poison"])
    registry, endpoint = CollectorRegistry(), free_endpoint()
    with application(broker, tmp_path, on_bad_record=BadRecordAction.SKIP) as app, running(app):
        app.serve_probes(endpoint, registry=registry)
        until(lambda: sum(app.stores.work.bad_records.values()) == 2)
        who = 'client_id="one",group="app"'
        found = sample(endpoint, "streams_application_bad_records_total")
        assert found.pop(f'{who},outcome="skip",stage="processing"') == 2
        assert list(found.values()) == [0] * 5


def test_a_topic_for_dead_letters_that_is_missing_is_a_problem(broker, tmp_path):
    """What was processed before counts once, and is committed; nothing is lost."""
    write(broker, [b"poison"])
    options = {"on_bad_record": DeadLetter("dead")}
    with application(broker, tmp_path, **options) as app, running(app) as errors:
        until(lambda: "topic dead does not exist" in "".join(app.health().problems))
        assert not app.ready()
        assert app.stores.work.records.total() <= 2 * RECORDS
        broker.create_topic("dead")
        until(app.ready)
        until(lambda: sum(app.stores.work.bad_records.values()) == 2)
        assert not errors
    with KafkaConsumer("dead", **READS, bootstrap_servers=broker.bootstrap_servers) as reader:
        found = [next(reader) for _ in range(2)]
    assert [(each.key, each.value) for each in found] == [(None, b"poison")] * 2


def test_a_function_that_hangs_is_named(broker, tmp_path):
    hangs, goes_on = threading.Event(), threading.Event()

    def handle(record, state):
        hangs.set()
        assert goes_on.wait(LIMIT_S)
        count(record, state)

    options = {"max_poll_interval_ms": 1000, "session_timeout_ms": 6000}
    with application(broker, tmp_path, handle, **options) as app, running(app):
        assert hangs.wait(LIMIT_S)
        until(lambda: app.health().problems)
        health = app.health()
        goes_on.set()
        assert health.is_alive
        assert not health.is_ready
        [problem] = health.problems
        assert problem.startswith("the function that processes records has been at in [")


def test_a_member_that_no_broker_answers_is_alive_and_not_ready(broker, tmp_path):
    port = int(broker.bootstrap_servers[0].rpartition(":")[2])
    with application(broker, tmp_path, session_timeout_ms=1000) as app, running(app) as errors:
        until(app.ready)
        broker.stop_node(1)
        until(lambda: not app.ready())
        # A question of the loop may fail before the session is over.
        until(lambda: "answered the heartbeats of this member" in str(app.health().problems))
        assert app.health().is_alive
        broker.start_node(1, port=port)
        until(app.ready)
        assert not errors


def test_tasks_that_run_nowhere_are_a_problem_of_all_members(broker, tmp_path):
    """The changelog has too few partitions; `failed` stays None."""
    with application(broker, tmp_path / "one") as app, running(app):
        until(lambda: app.stores.work.records.total() == 2 * RECORDS)

    def cut(embedded):
        embedded.cluster.delete_topic(CHANGELOG)
        embedded.cluster.create_topic(CHANGELOG, 1, configs={"cleanup.policy": "compact"})

    broker.call(cut)
    endpoint = free_endpoint()
    with application(broker, tmp_path / "two") as app, running(app):
        app.serve_probes(endpoint)
        until(lambda: app.health().problems)
        assert app.assignor.failed is None
        assert [get(endpoint, path)[0] for path in ("/live", "/ready", "/health")] == [
            200,
            503,
            503,
        ]
        assert (
            "has 1 partitions instead of 2"
            in json.loads(get(endpoint, "/health")[1])["problems"][0]
        )


def test_an_endpoint_is_host_and_port(broker, tmp_path):
    wrong = pytest.raises(ConfigError, match="endpoint '8080' is not host:port")
    with application(broker, tmp_path) as app, wrong:
        app.serve_probes("8080")


@pytest.fixture
def _level():
    before = logging.getLogger("kafka").level
    yield
    logging.getLogger("kafka").setLevel(before)


@pytest.mark.usefixtures("_level")
def test_an_outage_is_a_line_of_this_project_and_none_of_the_client(tmp_path, caplog):
    [block] = [each for each in blocks(ROOT / "docs/production.md") if "basicConfig" in each.body]
    exec(compile(block.body, str(block), "exec"), {})  # noqa: S102 a page of this project
    with running_broker(BrokerConfig(topics={"in": 2})) as broker:
        write(broker, [b"x"] * RECORDS)
        with application(broker, tmp_path, session_timeout_ms=1000) as app, running(app):
            until(app.ready)
            caplog.clear()
            port = int(broker.bootstrap_servers[0].rpartition(":")[2])
            broker.stop_node(1)
            until(lambda: app.health().problems)
            broker.start_node(1, port=port)
            until(app.ready)
            names = [record.name for record in caplog.records]
    assert not [name for name in names if name.startswith("kafka")]
    assert "assignor.adapters.rebootstrap.supervisor" in names
