"""The consumer has the methods of confluent-kafka's, and the page says how each differs."""

import inspect
import re
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from assignor.adapters.confluent import Consumer
from tests.assignor.adapters.confluent.harness import poll_until, servers_of

PAGE = Path("docs/clients.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("| method | difference")[2].partition("\n\n")[0]
ROWS = re.findall(r"^\| (`\w+`.*?) \| (.*) \|$", TABLE, re.MULTILINE)
METHODS = {name for name in dir(confluent_kafka.Consumer) if not name.startswith("_")}
DIFFERENCES = {name: text for names, text in ROWS for name in re.findall(r"`(\w+)`", names)}
# The page describes the newest release.
for newer in {"cluster_id"} - METHODS:
    del DIFFERENCES[newer]
OWN = vars(Consumer)


def test_the_page_has_a_row_for_each_method():
    assert DIFFERENCES.keys() == METHODS


def test_what_is_called_librdkafkas_own_is_inherited():
    inherited = {name for name in METHODS if name not in OWN}
    assert {name for name, text in DIFFERENCES.items() if "librdkafka's own" in text} == inherited
    assert {name for name in OWN if not name.startswith("_")} - METHODS == {"assignor"}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("subscribe", ["topics", "on_assign", "on_revoke", "on_lost"]),
        ("poll", ["timeout"]),
        ("consume", ["num_messages", "timeout"]),
        ("store_offsets", ["message", "offsets"]),
        ("commit", ["message", "offsets", "asynchronous", "renamed"]),
        ("seek", ["partition"]),
        ("set_sasl_credentials", ["username", "password"]),
    ],
)
def test_parameters_have_confluent_kafkas_names(name, parameters):
    assert list(inspect.signature(getattr(Consumer, name)).parameters)[1:] == parameters


def test_a_consumer_is_confluent_kafkas():
    assert issubclass(Consumer, confluent_kafka.Consumer)


def test_transactions_are_refused_in_one_sentence(broker, consumer):
    member = consumer()
    member.subscribe(["words"])
    poll_until(member.memberid, member)
    producer = Producer(
        {"bootstrap.servers": servers_of(broker), "transactional.id": "t", "log_level": 0}
    )
    with pytest.raises(KafkaException, match="commit through this consumer") as raised:
        producer.send_offsets_to_transaction([], member.consumer_group_metadata())
    assert raised.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE


def test_credentials_reach_the_members_next_connections(broker, consumer):
    member = consumer()
    member.set_sasl_credentials("me", "first")
    member.subscribe(["words"])
    poll_until(member.memberid, member)
    config = member._member._consumer._manager.config
    assert (config["sasl_plain_username"], config["sasl_plain_password"]) == ("me", "first")
    member.set_sasl_credentials("you", "second")
    assert (config["sasl_plain_username"], config["sasl_plain_password"]) == ("you", "second")


def test_a_partition_that_the_application_reads_cannot_be_the_groups(consumer):
    member = consumer()
    member.incremental_assign([TopicPartition("words", 0, 0), TopicPartition("other", 0, 0)])
    with pytest.raises(
        KafkaException, match=r"words \[0\] is assigned by this application"
    ) as raised:
        member.subscribe(["words"])
    assert raised.value.args[0].code() == KafkaError._CONFLICT
    member.incremental_unassign([TopicPartition("words", 0)])
    member.subscribe(["words"])
    with pytest.raises(KafkaException, match="is not assigned to this consumer now") as raised:
        member.incremental_assign([TopicPartition("words", 0, 0)])
    assert raised.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    poll_until(lambda: len(member.assignment()) == 5, member)
