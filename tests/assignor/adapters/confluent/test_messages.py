"""Errors of the member as messages, with confluent-kafka that creates messages and with older."""

import pytest
from confluent_kafka import KafkaError, Message

from assignor.adapters.confluent.errors import ErrorMessage, error_message

ERROR = KafkaError(KafkaError._FATAL, "the reason", fatal=True)
SETTERS = ["set_headers", "set_key", "set_value"]
# Of records only, or of releases that create messages themselves.
NEWER = {"delivery_count", "deserialized_key", "deserialized_value", "set_error", "set_topic"}
GETTERS = {name for name in dir(Message) if not name.startswith(("_", "set_"))} - NEWER


def test_an_own_message_has_the_methods_of_confluent_kafkas():
    own = {name for name in dir(ErrorMessage) if not name.startswith("_")}
    assert own == GETTERS | {*SETTERS}


@pytest.mark.parametrize("message", [ErrorMessage(ERROR), error_message(ERROR)])
def test_a_message_of_an_error_has_nothing_else(message):
    assert message.error() is ERROR
    assert len(message) == 0
    others = {name: getattr(message, name)() for name in GETTERS - {"error", "timestamp"}}
    assert set(others.values()) == {None}
    assert message.timestamp() == (0, 0)


@pytest.mark.parametrize("message", [ErrorMessage(ERROR), error_message(ERROR)])
def test_serializers_can_set_key_value_and_headers(message):
    message.set_key(b"key")
    message.set_value(b"value")
    message.set_headers([("name", b"header")])
    assert (message.key(), message.value()) == (b"key", b"value")
    assert message.headers() == [("name", b"header")]
    assert len(message) == 5
