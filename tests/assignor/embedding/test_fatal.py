"""Errors: which end a member, the pause after others, and which are of a signal's handler."""

import signal
import sys

import pytest
from kafka import errors as kafka_errors

from assignor.embedding import MemberStopped, PollErrors, fatal_reason, is_interrupt


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


def raised_by(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 it is what is tested
        return error
    raise AssertionError


def of_local_frame():
    caller = sys._getframe(1)
    raise ValueError(caller.f_lineno)


def of_frame(frame):
    raise ValueError(frame.f_lineno)


def of_number_and_frame(number, frame):
    raise ValueError(number, frame.f_lineno)


class Described:
    def of_frame(self, frame):
        raise ValueError(frame.f_lineno)

    def of_frames(self, *frames):
        raise ValueError(len(frames))


@pytest.mark.parametrize(
    "call",
    [
        of_local_frame,
        lambda: of_frame(sys._getframe()),
        lambda: Described().of_frame(sys._getframe()),
        lambda: Described().of_frames(sys._getframe(), sys._getframe()),
        lambda: of_number_and_frame(-1, sys._getframe()),
        lambda: of_number_and_frame(True, sys._getframe()),  # noqa: FBT003 it is no number of a signal
    ],
)
def test_a_function_that_has_the_frame_of_its_caller_is_no_handler(call):
    assert not is_interrupt(raised_by(call))


@pytest.fixture(params=[of_number_and_frame, lambda *_: {}["handled"], Described().of_frames])
def handler(request):
    """It is another one afterwards, so that only its arguments show what it was."""

    def once(number, frame):
        signal.signal(signal.SIGUSR1, before)
        request.param(number, frame)

    before = signal.signal(signal.SIGUSR1, once)
    yield once
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("alone", "handler")
def test_what_a_handler_raises_that_is_installed_no_more_is_an_interrupt():
    assert is_interrupt(raised_by(signal.raise_signal, signal.SIGUSR1))
