"""Errors of poll: which end a member, and the pause after others."""

import pytest
from kafka import errors as kafka_errors

from assignor.embedding import MemberStopped, PollErrors, fatal_reason


@pytest.mark.parametrize(
    "name",
    [
        "FencedInstanceIdError",
        "GroupAuthorizationFailedError",
        "GroupMaxSizeReachedError",
        "IllegalSaslStateError",
        "InconsistentGroupProtocolError",
        "InvalidSessionTimeoutError",
        "SaslAuthenticationFailedError",
        "TopicAuthorizationFailedError",
        "UnsupportedSaslMechanismError",
        "UnsupportedVersionError",
    ],
)
def test_these_errors_of_the_client_end_the_member_with_what_to_do(name):
    error = getattr(kafka_errors, name)()
    with pytest.raises(MemberStopped, match=name) as stopped:
        PollErrors().failed(error)
    assert ": " in str(stopped.value)
    assert stopped.value.__cause__ is error


def test_a_group_with_other_assignors_is_brought_to_this_one_by_two_bounces():
    todo = fatal_reason(kafka_errors.InconsistentGroupProtocolError())
    assert "'stream'" in todo
    assert "fallback_assignors (kafka-python)" in todo
    assert "partition.assignment.strategy (confluent-kafka" in todo
    assert "another group_id" in todo


def test_the_kind_of_an_error_is_named_once():
    for error in (
        kafka_errors.KafkaTimeoutError("no metadata"),
        kafka_errors.KafkaTimeoutError(),
        kafka_errors.UnknownTopicOrPartitionError("words"),
    ):
        assert PollErrors().failed(error).why.count(type(error).__name__) == 1
    assert "(OSError: gone)" in PollErrors().failed(OSError("gone")).why


@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.KafkaConnectionError(),
        kafka_errors.UnknownMemberIdError(),
        kafka_errors.RebalanceInProgressError(),
        ConnectionResetError("by peer"),
    ],
)
def test_these_pass_and_are_waited_for(error):
    assert fatal_reason(error) is None
    assert PollErrors().failed(error).wait_ms == 100


def test_pauses_double_up_to_ten_seconds_and_end_with_a_successful_poll():
    errors = PollErrors()
    waits = [errors.failed(OSError("x")).wait_ms for _ in range(10)]
    assert waits[:3] == [100, 200, 400]
    assert waits[-1] == 10_000
    assert errors.succeeded() == 10
    assert errors.failed(OSError("x")).wait_ms == 100


def test_the_first_error_of_each_kind_in_a_row_is_known():
    errors = PollErrors()
    given = [OSError("x"), OSError("y"), TimeoutError(), OSError("z"), TimeoutError()]
    assert [errors.failed(each).is_first for each in given] == [True, False, True, False, False]
    errors.succeeded()
    assert errors.failed(OSError("x")).is_first


def test_the_cause_of_an_error_counts_and_a_circle_of_causes_ends():
    wrapped = RuntimeError("poll")
    wrapped.__cause__ = kafka_errors.FencedInstanceIdError()
    assert "group.instance.id" in fatal_reason(wrapped)
    first, second = RuntimeError(), RuntimeError()
    first.__cause__, second.__cause__ = second, first
    assert fatal_reason(first) is None
