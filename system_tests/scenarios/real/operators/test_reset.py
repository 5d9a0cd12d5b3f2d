"""`assignor reset` beside Kafka's own `kafka-streams-application-reset.sh`, on a real broker."""

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from assignor.cli import main
from probing import NEWEST_KAFKA
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.reset import reset_lines
from system_tests.real import running_real_broker
from system_tests.support.jvm import ResetTool
from system_tests.support.stock_consumer import StockConsumer

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
INPUT, RECORDS, PARTITIONS = "words", 10, 2
POSITIONS = (
    ("--to-earliest",),
    ("--to-latest",),
    ("--to-offset", "4"),
    ("--to-offset", "999"),
    ("--shift-by", "-2"),
    ("--shift-by", "-100"),
    ("--to-datetime", "1970-01-01T00:00:05.000"),
    ("--to-datetime", "2099-01-01T00:00:00.000"),
    ("--by-duration", "P1D"),
)


@pytest.fixture(scope="module")
def broker():
    with running_real_broker(NEWEST_KAFKA) as running:
        with KafkaAdminClient(bootstrap_servers=running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(INPUT, PARTITIONS, 1)])
        with KafkaProducer(bootstrap_servers=running.bootstrap_servers) as producer:
            for number in range(RECORDS):
                for partition in range(PARTITIONS):
                    ms = 1000 * number
                    producer.send(INPUT, b"x", partition=partition, timestamp_ms=ms)
        yield running


def prepared(servers, group):
    """Make what an application leaves: committed offsets, and internal topics."""
    internal = [f"{group}-counts-changelog", f"{group}-by-key-repartition"]
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in internal])
    where = [TopicPartition(topic, n) for topic in (INPUT, internal[1]) for n in range(PARTITIONS)]
    with KafkaConsumer(bootstrap_servers=servers, group_id=group) as consumer:
        consumer.commit(
            {each: OffsetAndMetadata(6 if each.topic == INPUT else 0, "", -1) for each in where}
        )
    return internal


def left(servers, group):
    """What is left of an application: its input's committed offsets, and its topics."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        offsets = admin.list_group_offsets(group)[group]
        topics = {name for name in admin.list_topics() if name.startswith(f"{group}-")}
    return {
        (each.topic, each.partition): (found.offset, found.metadata)
        for each, found in offsets.items()
        if each.topic == INPUT
    }, topics


def test_the_same_offsets_and_topics_are_left_as_by_kafka_s_tool(broker):
    servers = broker.bootstrap_servers
    with ResetTool(broker.release) as tool:
        for number, position in enumerate(POSITIONS):
            own, kafkas = f"own-{number}", f"tool-{number}"
            internal = prepared(servers, own)
            prepared(servers, kafkas)
            named = [word for name in internal for word in ("--internal-topic", name)]
            options = ["--bootstrap-server", servers, "--group", own, "--input-topic", INPUT]
            words = ["reset", *options, *named, "--execute", *_joined(position)]
            done = CliRunner().invoke(main, words)
            assert done.exit_code == 0, done.output
            output = tool.run(
                *("--bootstrap-server", servers, "--application-id", kafkas),
                *("--input-topics", INPUT, *position),
            )
            assert output.status == 0, output
            found = left(servers, own)
            assert len(found[0]) == PARTITIONS
            assert not found[1]
            assert found == left(servers, kafkas), position


def _joined(position):
    """A negative number is no option."""
    return ["=".join(position)] if len(position) > 1 else list(position)


def test_kafka_s_tool_touches_a_group_with_a_longer_name_and_this_one_does_not(broker):
    servers = broker.bootstrap_servers
    longer = prepared(servers, "app-2")
    own = prepared(servers, "app")
    options = ["reset", "--bootstrap-server", servers, "--group", "app", "--input-topic", INPUT]
    named = [f"--internal-topic={name}" for name in own]
    done = CliRunner().invoke(main, [*options, *named, "--execute"])
    assert done.exit_code == 0, done.output
    assert left(servers, "app-2")[1] == set(longer)
    prepared(servers, "app")
    # The command that a plan prints names the internal topics: the tool then takes no others.
    group = SimulatedGroup(name="app", input_topics=(INPUT,), internal_topics=tuple(own))
    _, *words = reset_lines(group)[0].replace("HOST:PORT", servers).split()
    with ResetTool(broker.release) as tool:
        named = tool.run(*words, "--dry-run")
        inferred = tool.run(*words[:-2], "--dry-run")
    assert words[-2] == "--internal-topics"
    assert all(topic in named.out for topic in own), named
    assert longer[0] not in named.out
    assert longer[0] in inferred.out


def test_a_static_member_within_its_session_is_refused_as_by_kafka_s_tool(broker):
    servers, group = broker.bootstrap_servers, "static"
    internal = prepared(servers, group)
    static = {"group_instance_id": "first", "session_timeout_ms": 60_000}
    with StockConsumer(INPUT, bootstrap_servers=servers, group_id=group, **static) as consumer:
        while not consumer.assignment():
            consumer.poll(timeout_ms=200)
    options = ["reset", "--bootstrap-server", servers, "--group", group, "--input-topic", INPUT]
    done = CliRunner().invoke(main, [*options, f"--internal-topic={internal[0]}", "--execute"])
    assert (done.exit_code, "static as first" in done.output) == (1, True)
    with ResetTool(broker.release) as tool:
        output = tool.run(
            "--bootstrap-server", servers, "--application-id", group, "--input-topics", INPUT
        )
    assert output.status != 0
    assert "still active" in f"{output}"
    assert left(servers, group)[1] == set(internal)
