"""Which client gets which setting; what is refused, by name."""

from contextlib import closing

import confluent_kafka
import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaException,
)

from assignor import TasksListener
from assignor.adapters.confluent import Consumer
from assignor.adapters.confluent.settings import divided, rebalance_protocol
from assignor.adapters.confluent.topics import SettingKeywords
from assignor.adapters.kafka_python import streams_consumer
from assignor.adapters.membership import OPTIONS
from assignor.errors import ConfigError
from tests.assignor.adapters.confluent.harness import TOPOLOGY, refusal

BASE = {"bootstrap.servers": "a:1, b:2", "group.id": "g"}


def test_defaults_are_librdkafkas():
    settings = divided(BASE)
    assert settings.member == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "rdkafka",
        "group_id": "g",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 0,
        "heartbeat_interval_ms": 3000,
        "max_poll_interval_ms": 300_000,
        "metadata_max_age_ms": 300_000,
        "reconnect_backoff_max_ms": 10_000,
        "reconnect_backoff_ms": 100,
        "request_timeout_ms": 60_000,
        "retry_backoff_ms": 100,
        "session_timeout_ms": 45_000,
        "connections_max_idle_ms": 540_000,
        "security_protocol": "PLAINTEXT",
    }
    assert settings.reader == {
        **BASE,
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
    }
    assert (settings.auto_commit, settings.auto_commit_interval_s) == (True, 5.0)
    assert settings.auto_offset_store
    assert settings.rebootstrap == {"metadata_recovery_rebootstrap_trigger_ms": 300_000}
    assert (settings.max_poll_interval_s, settings.commit_timeout_s) == (300.0, 60.0)


def test_what_is_given_reaches_the_member_and_librdkafka():
    settings = divided(
        BASE
        | {
            "client.id": "c",
            "client.rack": "r1",
            "group.instance.id": "i",
            "session.timeout.ms": "6000",
            "max.poll.interval.ms": 7000,
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "False",
            "on_commit": print,
            "fetch.min.bytes": 5,
            "partition.assignment.strategy": "range, roundrobin",
            "metadata.recovery.strategy": "none",
        }
    )
    member = settings.member
    assert (member["client_id"], member["client_rack"]) == ("c", "r1")
    assert (member["group_instance_id"], member["session_timeout_ms"]) == ("i", 6000)
    assert settings.max_poll_interval_s == 7.0
    assert (settings.auto_commit, settings.auto_commit_interval_s) == (False, 0.0)
    assert not settings.auto_offset_store
    assert settings.on_commit is print
    assert settings.rebootstrap == {}
    assert settings.other_assignors == ("range", "roundrobin")
    # librdkafka is in no group.
    kept = settings.reader
    assert {"group.instance.id", "on_commit", "partition.assignment.strategy"}.isdisjoint(kept)
    assert kept["fetch.min.bytes"] == 5
    assert kept["client.rack"] == settings.client_rack == "r1"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        (
            {"session.timeout.ms": 3000, "heartbeat.interval.ms": 3000},
            "heartbeat.interval.ms=3000 is not below session.timeout.ms=3000; give at most a third",
        ),
        (
            {"session.timeout.ms": 1},
            "session.timeout.ms=1 leaves no time for a heartbeat; give 2 or more",
        ),
        *(
            (
                {"bootstrap.servers": given},
                f"bootstrap.servers={given!r} is refused; give host:port, or several in one text",
            )
            for given in (",", ["127.0.0.1:9092"], ("a:1", "b:2"))
        ),
        ({"bootstrap.servers": "a:1,b:99999"}, "bootstrap.servers='b:99999' is refused"),
        ({"client.id": "a\udcff"}, "client.id='a\\udcff' is no valid UTF-8; give a valid text"),
        ({"group.protocol": "consumer"}, "group.protocol='consumer' is not supported"),
        ({"group.protocol.type": "connect"}, "group.protocol.type='connect' is not supported"),
        ({"group.remote.assignor": "uniform"}, "group.remote.assignor is not supported"),
        ({"offset.store.method": "file"}, "offset.store.method is not supported"),
        (
            {"default.topic.config": {"offset.store.method": "file"}},
            "offset.store.method is not supported",
        ),
        ({"default.topic.config": None}, "default.topic.config is None; give a dict of settings"),
        ({"session.timeout.ms": 1.5}, "session.timeout.ms is 1.5; give a whole number"),
        *(
            ({"session.timeout.ms": text}, f"session.timeout.ms is {text!r}; give a whole number")
            for text in ("soon", "6_000", "06000", "\u0666000", "9" * 19)
        ),
        ({"partition.assignment.strategy": "sticky"}, "'sticky' is unknown"),
        ({"partition.assignment.strategy": "range,cooperative-sticky"}, "mixes eager and"),
        ({"security.protocol": "tls"}, "'tls' is unknown; choose from plaintext, ssl"),
    ],
)
def test_what_the_member_cannot_do_is_refused_by_name(more, why):
    assert why in refusal(lambda: divided(BASE | more))


@pytest.mark.parametrize(
    "more",
    [
        {"no.such.setting": 1},
        {5: "x"},
        {None: "x"},
        {b"group.id": "x"},
        {"default.topic.config": {"no.such.setting": 1}},
        {"default.topic.config": {5: 1}},
        {"default.topic.config": {"enable.auto.commit": "maybe"}},
        {"auto.offset.reset": "none"},
        {"on_commit": 5},
        {"fetch.min.bytes": "many"},
        {"session.timeout.ms": 0},
        {"session.timeout.ms": -1, "heartbeat.interval.ms": 5},
        *(
            {name: value}
            for name in ("enable.auto.commit", "enable.auto.offset.store")
            for value in ("yes", "on", "maybe", " true", "", None, 2, 1.0)
        ),
    ],
)
def test_what_librdkafka_refuses_is_refused_as_it_does(more):
    with pytest.raises(KafkaException) as own:
        Consumer(BASE | more, topology=TOPOLOGY)
    with pytest.raises(KafkaException) as its:
        confluent_kafka.Consumer(BASE | more)
    assert own.value.args[0] == its.value.args[0]
    assert own.value.args[0].str() == its.value.args[0].str()


@pytest.mark.parametrize(
    ("more", "begin"),
    [
        ({}, OFFSET_END),
        ({"auto.offset.reset": " Earliest"}, OFFSET_BEGINNING),
        ({"auto.offset.reset": "error"}, OFFSET_INVALID),
        ({"default.topic.config": {"auto.offset.reset": "smallest"}}, OFFSET_BEGINNING),
        ({"default.topic.config": {"auto.offset.reset": "error"}}, OFFSET_INVALID),
        (
            {"auto.offset.reset": "latest", "default.topic.config": {"auto.offset.reset": "end"}},
            OFFSET_END,
        ),
        (
            {
                "default.topic.config": {"auto.offset.reset": "earliest"},
                "auto.offset.reset": "latest",
            },
            OFFSET_BEGINNING,
        ),
        ({"topic.auto.offset.reset": "earliest"}, OFFSET_BEGINNING),
        ({"auto.offset.reset": "latest", "topic.auto.offset.reset": "earliest"}, OFFSET_BEGINNING),
        ({"topic.auto.offset.reset": "latest", "auto.offset.reset": "earliest"}, OFFSET_BEGINNING),
    ],
)
def test_partitions_begin_where_librdkafka_would_begin(more, begin):
    settings = divided(BASE | more)
    assert settings.reset_offset == begin
    with closing(confluent_kafka.Consumer({**settings.reader, "log_level": 0})):
        assert "default.topic.config" not in settings.reader


def test_settings_in_default_topic_config_go_before_those_beside_it():
    inner = {"group.id": "inner", "enable.auto.commit": False, "session.timeout.ms": 7000}
    settings = divided({**BASE, "session.timeout.ms": 6000, "default.topic.config": inner})
    assert (settings.group_id, settings.member["group_id"]) == ("inner", "inner")
    assert (settings.auto_commit, settings.member["session_timeout_ms"]) == (False, 7000)
    assert settings.reader["group.id"] == "inner"


def test_upper_case_means_the_same_protocol():
    assert divided(BASE | {"group.protocol": " CLASSIC"}).group_id == "g"


def test_idle_connections_of_the_member_stay_open_for_the_time_of_a_request():
    for given, expected in ((1, 60_001), (0, 540_000), (70_000, 70_000)):
        member = divided(BASE | {"connections.max.idle.ms": given}).member
        assert member["connections_max_idle_ms"] == expected


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        *((value, True) for value in ("true", "TRUE", "t", "1", True, 1)),
        *((value, False) for value in ("false", "False", "f", "0", False, 0)),
    ],
)
def test_booleans_are_librdkafkas(value, flag):
    with closing(confluent_kafka.Consumer(BASE | {"log_level": 0, "enable.auto.commit": value})):
        assert divided(BASE | {"enable.auto.commit": value}).auto_commit is flag


def test_group_id_and_callables_are_checked_as_in_confluent_kafka():
    for nothing in ({}, {"group.id": ""}, {"group.id": None}):
        with pytest.raises(ValueError, match=r"group\.id must be set"):
            Consumer({"bootstrap.servers": "a:1"} | nothing, topology=TOPOLOGY)
    with pytest.raises(ConfigError, match=r"group_id is no option; give 'group\.id' in"):
        Consumer(BASE, topology=TOPOLOGY, group_id="")
    with pytest.raises(TypeError, match="expected configuration dict"):
        Consumer(topology=TOPOLOGY)


def test_settings_may_be_keywords_as_in_confluent_kafka():
    for arguments in ([], [BASE | {"group.id": "other"}]):
        with Consumer(*arguments, **BASE, topology=TOPOLOGY) as consumer:
            assert consumer._settings == divided(BASE)
    with pytest.raises(TypeError, match="expected configuration dict"):
        Consumer([], **BASE, topology=TOPOLOGY)


def ignored(*_):
    """A callback."""


def test_settings_without_a_dot_are_keywords_and_wrong_options_are_no_settings():
    dotless = {
        "debug": "plugin",
        "error_cb": ignored,
        "log_level": 0,
        "on_commit": ignored,
        "retries": 1,
        "stats_cb": ignored,
        "throttle_cb": ignored,
    }
    with Consumer(**BASE, **dotless, topology=TOPOLOGY, num_standby_replicas=1) as consumer:
        assert consumer._settings == divided(BASE | dotless)
        assert consumer.assignor._options.settings == {"num_standby_replicas": 1}
    for wrong, hint in (("num_standby_replica", "num_standby_replicas"), ("listner", "listener")):
        with pytest.raises(ConfigError, match=f"unknown setting {wrong}; did you mean {hint}"):
            Consumer(**BASE, **dotless, topology=TOPOLOGY, **{wrong: 1})


def test_every_setting_without_a_dot_is_one_of_confluent_kafka_and_no_option():
    names = {*SettingKeywords.__annotations__}
    assert names.isdisjoint(OPTIONS)
    # With `oauth_cb`, confluent-kafka waits for a token.
    values = {name: ignored if "_c" in name else 0 for name in names - {"oauth_cb"}}
    values |= {"debug": "plugin", "partitioner": "random"}
    confluent_kafka.Consumer(BASE | values).close()


def test_a_client_id_of_none_is_librdkafkas_own():
    assert divided(BASE | {"client.id": None}).member["client_id"] == "rdkafka"


def test_options_of_the_assignor_are_checked(tmp_path):
    with pytest.raises(ConfigError):
        Consumer(BASE, topology=TOPOLOGY, num_standby_replicas=-1)
    with pytest.raises(ConfigError, match=r"application_id='other' is unlike group.id='g'"):
        Consumer(BASE, topology=TOPOLOGY, application_id="other")
    with Consumer(BASE, topology=TOPOLOGY, state_dir=tmp_path) as consumer:
        assert consumer.assignor.directory is not None


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        (None, (), "cooperative"),
        ("eager", (), "eager"),
        (None, ("range",), "eager"),
        (None, ("cooperative-sticky",), "cooperative"),
        ("cooperative", ("cooperative-sticky",), "cooperative"),
    ],
)
def test_partitions_move_as_in_the_other_assignors(wanted, others, expected):
    assert rebalance_protocol(wanted, others) == expected


def test_two_ways_to_move_partitions_are_refused():
    why = refusal(lambda: rebalance_protocol("cooperative", ("range",)))
    assert "partition.assignment.strategy=range, which is eager" in why


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"listener": print}, ConfigError, "give an instance of a subclass"),
        ({"listener": TasksListener}, ConfigError, "give an instance of a subclass"),
        ({"topology": None}, TypeError, "give topology, or topologies with its versions"),
        ({"topologies": [TOPOLOGY]}, ConfigError, "topology and topologies are both given"),
        ({"topology": None, "topologies": []}, ConfigError, "a list of assignor.Topology"),
    ],
)
def test_wrong_options_are_refused_as_by_streams_consumer(options, error, why):
    given = {"topology": TOPOLOGY} | options
    with pytest.raises(error, match=why):
        Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, **given)
    with pytest.raises(error, match=why):
        streams_consumer(group_id="g", bootstrap_servers="127.0.0.1:1", **given)
