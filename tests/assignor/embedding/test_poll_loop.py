"""What poll loops do after each event, without a client: the table, back-off, sizes and slices."""

from types import SimpleNamespace

import pytest
from aiokafka import errors as aio_errors
from kafka import TopicPartition as ClientPartition
from kafka import errors as kp_errors

from assignor import ConfigError, UnreadableRecord
from assignor.embedding import ClusterUnavailable, ListenerFailed, LostPosition, MemberStopped
from assignor.embedding.loops import (
    CLOSED,
    LOOP_RULES,
    LoopFacts,
    Step,
    Then,
    decide,
    log_late_commit,
    passed_over,
)
from assignor.errors import LeaderRefused
from assignor.stores import StoreError
from encoding import TopicPartition

IN = ClientPartition("in", 0)
UNREADABLE = UnreadableRecord("in", 0, 7, "bad")
KAFKA = (kp_errors.KafkaError, aio_errors.KafkaError)
EVENTS = [
    # step, what happened, what the loop does
    (Step.NEXT, {"is_ended": True}, Then.END),
    (Step.NEXT, {"is_shutdown": True}, Then.END),
    (Step.NEXT, {}, Then.POLL),
    (Step.POLL, {"error": KeyboardInterrupt()}, Then.RAISE),
    (Step.POLL, {"error": SystemExit(), "is_closed": True}, Then.RAISE),
    (Step.POLL, {"error": ListenerFailed("on_tasks_assigned", OSError())}, Then.RAISE),
    (Step.PROCESS, {"error": OSError(), "is_handlers": True}, Then.RAISE),
    (Step.PROCESS, {"error": ClusterUnavailable("x"), "is_handlers": True}, Then.RAISE),
    (Step.POLL, {"error": RuntimeError(), "is_closed": True, "is_ended": True}, Then.END),
    (Step.POLL, {"error": RuntimeError(), "is_closed": True}, Then.STOP),
    (Step.PROCESS, {"error": RuntimeError(), "is_closed": True}, Then.STOP),
    (Step.COMMIT, {"error": RuntimeError(), "is_closed": True}, Then.STOP),
    (Step.POLL, {"error": kp_errors.OffsetOutOfRangeError({IN: 3})}, Then.STOP),
    (Step.POLL, {"error": kp_errors.NoOffsetForPartitionError({IN})}, Then.STOP),
    (Step.POLL, {"error": kp_errors.LogTruncationError({IN: None})}, Then.STOP),
    (Step.POLL, {"error": aio_errors.OffsetOutOfRangeError({IN: 3})}, Then.STOP),
    (Step.POLL, {"error": aio_errors.NoOffsetForPartitionError(IN)}, Then.STOP),
    (Step.POLL, {"error": kp_errors.OffsetOutOfRangeError({IN: 3}), "resets": True}, Then.SETTLE),
    (Step.POLL, {"error": aio_errors.NoOffsetForPartitionError(IN), "resets": True}, Then.SETTLE),
    (Step.POLL, {"error": MemberStopped("refused")}, Then.STOP),
    (Step.PROCESS, {"error": MemberStopped("no right")}, Then.STOP),
    (Step.POLL, {"error": UNREADABLE}, Then.RAISE),
    (Step.PROCESS, {"error": UNREADABLE}, Then.RAISE),
    (Step.POLL, {"error": aio_errors.RecordTooLargeError()}, Then.RAISE),
    (Step.POLL, {"error": kp_errors.GroupAuthorizationFailedError()}, Then.STOP),
    (Step.PROCESS, {"error": kp_errors.TopicAuthorizationFailedError()}, Then.STOP),
    (Step.POLL, {"error": aio_errors.KafkaError("Unknown"), "fenced_after_s": 0.5}, Then.STOP),
    (Step.COMMIT, {"error": kp_errors.CommitFailedError()}, Then.LATER),
    (Step.COMMIT, {"error": kp_errors.RebalanceInProgressError()}, Then.LATER),
    (Step.COMMIT, {"error": aio_errors.CommitFailedError()}, Then.LATER),
    (Step.COMMIT, {"error": aio_errors.IllegalStateError()}, Then.LATER),
    (Step.COMMIT, {"error": kp_errors.KafkaTimeoutError()}, Then.LATER),
    (Step.COMMIT, {"error": TimeoutError()}, Then.LATER),
    (Step.COMMIT, {"error": kp_errors.KafkaConnectionError(), "patience_s": 1.0}, Then.RETRY),
    (Step.COMMIT, {"error": kp_errors.KafkaConnectionError(), "patience_s": 0.5}, Then.RAISE),
    (Step.COMMIT, {"error": kp_errors.InvalidCommitOffsetSizeError()}, Then.RAISE),
    (Step.COMMIT, {"error": kp_errors.UnknownError()}, Then.RAISE),
    (Step.COMMIT, {"error": kp_errors.GroupAuthorizationFailedError()}, Then.STOP),
    (Step.COMMIT, {"error": RuntimeError(), "is_closed": True, "is_ended": True}, Then.END),
    (Step.POLL, {"error": kp_errors.KafkaConnectionError()}, Then.RETRY),
    (Step.POLL, {"error": aio_errors.KafkaConnectionError()}, Then.RETRY),
    (Step.POLL, {"error": aio_errors.KafkaTimeoutError()}, Then.RETRY),
    (Step.POLL, {"error": OSError("gone")}, Then.RETRY),
    (Step.POLL, {"error": LeaderRefused("too old")}, Then.RETRY),
    (Step.POLL, {"error": StoreError("the disk is full")}, Then.RETRY),
    (Step.PROCESS, {"error": ClusterUnavailable("gone")}, Then.RETRY),
    (Step.PROCESS, {"error": kp_errors.UnknownError()}, Then.RETRY),
    (Step.POLL, {"error": kp_errors.UnknownError(), "patience_s": 1.0}, Then.RETRY),
    (Step.POLL, {"error": kp_errors.UnknownError(), "patience_s": 0.5}, Then.STOP),
    (Step.POLL, {"error": ConfigError("two consumers")}, Then.RAISE),
    (Step.POLL, {"error": ZeroDivisionError()}, Then.RAISE),
    (Step.PROCESS, {"error": StoreError("the disk is full")}, Then.RAISE),
    (Step.PROCESS, {"error": OSError("the disk is full")}, Then.RAISE),
    (Step.REBALANCE, {"is_lost": True}, Then.DROP),
    (Step.REBALANCE, {"is_lost": True, "is_assigned": True}, Then.DROP),
    (Step.REBALANCE, {"is_assigned": True}, Then.BEGIN),
    (Step.REBALANCE, {}, Then.GIVE_UP),
]


def facts(step, given):
    is_clients = isinstance(given.get("error"), KAFKA)
    return LoopFacts(**{"step": step, "is_clients": is_clients, "failing_s": 1.0} | given)


@pytest.mark.parametrize(("step", "given", "then"), EVENTS)
def test_each_event_has_its_row(step, given, then):
    assert decide(facts(step, given)).then is then


def test_each_row_is_the_row_of_an_event():
    decided = {decide(facts(step, given)).name for step, given, _ in EVENTS}
    assert [rule.name for rule in LOOP_RULES if rule.name not in decided] == []


def test_the_error_of_a_lost_position_names_partition_offset_and_remedy(loop):
    raised = loop.failed(Step.POLL, kp_errors.OffsetOutOfRangeError({IN: 3})).raised
    assert isinstance(raised, LostPosition)
    assert (raised.topic, raised.partition, raised.offset) == ("in", 0, 3)
    assert "in [0]: offset 3 does not exist" in str(raised)
    assert "--reset-offsets, or set auto_offset_reset to earliest or latest" in str(raised)
    found = {IN: SimpleNamespace(offset=5), ClientPartition("in", 1): None}
    raised = loop.failed(Step.POLL, kp_errors.LogTruncationError(found)).raised
    assert "in [0]: offset 5 does not exist; in [1]: no offset is committed" in str(raised)


@pytest.mark.parametrize(
    ("error", "leaves"),
    [
        (kp_errors.NoOffsetForPartitionError({IN}), True),
        (MemberStopped("refused"), True),
        (UNREADABLE, False),
        (ZeroDivisionError(), False),
    ],
)
def test_only_a_member_that_cannot_go_on_leaves(loop, error, leaves):
    reaction = loop.failed(Step.POLL, error)
    assert reaction.leaves is leaves
    assert reaction.raised is not None
    assert not loop.failed(Step.POLL, error, is_closed=True).leaves


def test_an_error_of_a_closed_consumer_ends_the_loop_quietly_if_that_was_asked_for(loop):
    reaction = loop.failed(Step.POLL, RuntimeError(), is_closed=True, is_ended=True)
    assert (reaction.ends, reaction.raised) == (True, None)
    assert str(loop.failed(Step.POLL, RuntimeError(), is_closed=True).raised) == CLOSED


def test_errors_of_which_nothing_is_known_are_retried_for_one_poll_interval(loop, virtual):
    waits = []
    reaction = loop.failed(Step.POLL, kp_errors.UnknownError())
    while reaction.raised is None:
        waits.append(reaction.wait_s)
        virtual.now_s += reaction.wait_s
        reaction = loop.failed(Step.POLL, kp_errors.UnknownError("disk"))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert reaction.leaves
    assert "every poll has failed for 6 s, the last one with" in str(reaction.raised)
    assert "disk" in str(reaction.raised)


def test_a_poll_that_succeeds_begins_the_patience_anew(loop, virtual):
    for _ in range(10):
        assert loop.failed(Step.POLL, kp_errors.UnknownError()).wait_s == 0.1
        virtual.now_s += 3.0
        loop.delivered()


def test_a_cluster_that_is_gone_is_waited_for_without_a_limit(loop, virtual):
    for _ in range(100):
        assert loop.failed(Step.POLL, OSError("gone")).wait_s <= 10.0
        virtual.now_s += 60.0


def test_an_outage_is_two_lines_of_the_log(loop, caplog):
    caplog.set_level("INFO")
    for _ in range(2):
        for _ in range(9):
            loop.failed(Step.POLL, OSError("gone"))
        for _ in range(2):
            loop.delivered()
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO"] * 2
    assert caplog.messages[0].startswith("poll failed (OSError: gone)")
    assert caplog.messages[1] == "polls succeed again, after 9 failures"


def test_what_state_stores_log_is_not_logged_twice(loop, caplog):
    for _ in range(9):
        loop.failed(Step.PROCESS, ClusterUnavailable("gone"))
    assert caplog.messages == []


def test_records_that_are_kept_are_tried_again_at_least_once_a_second(loop):
    waits = [loop.failed(Step.PROCESS, ClusterUnavailable("gone")).wait_s for _ in range(9)]
    assert waits[:4] == [0.1, 0.2, 0.4, 0.8]
    assert set(waits[4:]) == {1.0}


def test_the_first_record_is_measured_before_there_is_a_whole_batch(loop, poll):
    assert loop.max_records == 1
    assert poll(0, 1.0) == 1
    assert poll(1, 0.001) is None


def test_batches_are_as_large_as_half_of_the_interval_suffices_for(poll):
    assert poll(1, 0.5) == 4
    assert poll(4, 2.0) == 4
    # Faster records count little by little.
    assert poll(4, 0.004) == 5
    sizes = [poll(5, 0.005) for _ in range(40)]
    assert sizes == sorted(sizes, key=lambda size: size or 1000)
    assert sizes[-1] is None
    assert poll(500, 10_000.0) == 1


def test_a_consumer_without_a_limit_gets_one_after_a_batch_that_was_too_long(made, poll):
    loop = made(max_poll_records=None)
    assert loop.max_records is None
    assert poll(1_000_000, 1.0, loop) is None
    assert poll(1000, 100.0, loop) == 20


def test_a_single_record_that_takes_too_long_is_named_with_what_to_do(poll, caplog):
    poll(1, 5.0)
    [line] = caplog.messages
    assert line.startswith("5.0 s passed between two polls, above max_poll_interval_ms=4000: ")
    assert line.endswith("a single record took so long, so raise the limit")


@pytest.mark.parametrize(("took_s", "why"), [(1.0, "took 2.0 s of it"), (1.9, "max_poll_records")])
def test_a_pause_is_the_applications_as_far_as_its_calls_took(virtual, loop, caplog, took_s, why):
    loop.delivered(None)
    for _ in range(2):
        begin_s = virtual.now_s
        virtual.now_s += took_s
        loop.handled(SimpleNamespace(topic="words", partition=0, offset=1), begin_s)
    virtual.now_s += 5.0 - 2 * took_s
    loop.polls(is_ended=False, is_shutdown=False)
    [line] = caplog.messages
    assert why in line


@pytest.mark.parametrize(("session_ms", "slice_s"), [(None, 2.0), (3000, 1.5), (45_000, 2.0)])
def test_a_slice_ends_at_half_of_the_shorter_limit(virtual, made, session_ms, slice_s):
    loop = made(session_timeout_ms=session_ms)
    loop.delivered()
    virtual.now_s += slice_s - 0.01
    assert not loop.is_slice_over()
    virtual.now_s += 0.02
    assert loop.is_slice_over()
    loop.delivered()
    assert not loop.is_slice_over()


def test_only_positions_that_moved_ahead_are_set_back():
    before = {"same": 5, "ahead": 5, "behind": 5, "gone": 5}
    after = {"same": 5, "ahead": 9, "behind": 2, "new": 7}
    assert passed_over(before, after) == {"ahead": 5}


def test_a_commit_that_is_late_is_logged_and_any_other_error_is_raised(caplog):
    caplog.set_level("INFO")
    log_late_commit(kp_errors.CommitFailedError("the group\n continues"))
    log_late_commit(TimeoutError())
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert caplog.messages == [
        (
            "not committed: the group rebalances, or has done so; what is not committed is "
            "processed again"
        ),
        "not committed: no broker has answered within request_timeout_ms",
    ]
    with pytest.raises(kp_errors.KafkaConnectionError):
        log_late_commit(kp_errors.KafkaConnectionError())


def test_errors_say_where_the_record_is():
    assert TopicPartition(UNREADABLE.topic, UNREADABLE.partition) == TopicPartition("in", 0)
    assert str(UNREADABLE) == (
        "in [0]: the record at offset 7 cannot be read (bad); correct the deserializer or install "
        "the codec, or leave it out: seek to offset 8"
    )
