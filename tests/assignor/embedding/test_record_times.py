"""Records that take longer than the time between two polls: how they are named."""

from types import SimpleNamespace

import pytest

from encoding import TopicPartition


def handled(loop, virtual, record, took_s, **more):
    begin_s, virtual.now_s = virtual.now_s, virtual.now_s + took_s
    return loop.handled(record, begin_s, **more)


def record(partition=3, offset=9):
    return SimpleNamespace(topic="in", partition=partition, offset=offset)


def test_each_call_of_the_handler_that_takes_too_long_names_its_record(loop, virtual, caplog):
    message = SimpleNamespace(topic=lambda: "in", partition=lambda: 3, offset=lambda: 10)
    for each, took_s in ((record(), 4.0), (record(), 5.0), (record(4, 7), 4.5), (message, 60.0)):
        handled(loop, virtual, each, took_s)
    first, other, later = caplog.messages
    assert first.startswith("in [3]: the function that processes records took 5.0 s for the record")
    assert "at offset 9, above max_poll_interval_ms=4000" in first
    assert "in [4]: " in other
    assert "took 60.0 s for the record at offset 10," in later


def test_a_record_that_is_too_slow_again_is_reported_with_the_number_of_times(
    loop, virtual, caplog
):
    assert handled(loop, virtual, record(), 5.0) == ""
    [line] = caplog.messages
    again = [handled(loop, virtual, record(), 5.0), handled(loop, virtual, record(), 5.0)]
    place = "in [3]: the function that processes records took 5.0 s for the record at offset 9"
    assert line.startswith(place)
    assert again[0].startswith(place)
    assert [line.split("that was so ")[1].split(",")[0] for line in again] == [
        "at least 2 times",
        "at least 3 times",
    ]
    assert "repeated without end" in again[0]
    # Another record of the partition begins anew.
    virtual.now_s += 100.0
    assert handled(loop, virtual, record(offset=10), 5.0) == ""
    assert handled(loop, virtual, record(offset=10), 5.0)


def test_several_slow_records_of_a_partition_are_counted_each(loop, virtual, caplog):
    """Where all records are too slow, others come before the first one is processed again."""
    assert [handled(loop, virtual, record(offset=at), 5.0) for at in (9, 10, 11)] == [""] * 3
    again = [handled(loop, virtual, record(offset=at), 5.0) for at in (9, 10, 9)]
    assert [line.split("that was so at least ")[1].split(",")[0] for line in again] == [
        "2 times",
        "2 times",
        "3 times",
    ]
    for at in range(2000):
        handled(loop, virtual, record(offset=at), 5.0)
    assert len(loop._attempts) == 1000


def test_a_record_that_fits_alone_and_ends_behind_the_limit_is_named_and_held_back(
    loop, virtual, caplog
):
    loop.delivered()
    handled(loop, virtual, record(3, 7), 1.9)
    handled(loop, virtual, record(4, 1), 3.9)
    [line] = caplog.messages
    assert "took 3.9 s for the record at offset 1, 5.8 s after the last poll, above" in line
    assert loop.slow == {TopicPartition("in", 4): 1}
    loop.delivered()
    handled(loop, virtual, record(4, 1), 3.9)
    assert loop.slow == {}


@pytest.mark.parametrize(
    ("has_left", "says"),
    [
        (
            True,
            "and other members, if there are any, run its tasks",
        ),
        (False, "this member is still in the group, and leaves it if this takes a little longer"),
    ],
)
def test_a_pause_says_whether_the_member_has_left(loop, virtual, caplog, has_left, says):
    given = {"has_left": lambda: has_left}
    handled(loop, virtual, record(), 5.0, **given)
    loop.polls(is_ended=False, is_shutdown=False, **given)
    loop.delivered(1)
    virtual.now_s += 5.0
    loop.polls(is_ended=False, is_shutdown=False, **given)
    assert [says in line for line in caplog.messages] == [True, True]


def test_whether_a_member_has_left_is_asked_only_for_a_line_that_says_so(loop, virtual):
    """The answer makes the loss of the membership a matter that is logged."""
    handled(loop, virtual, record(), 5.0)
    handled(loop, virtual, record(offset=10), 5.0, has_left=None)
    loop.delivered(1)
    handled(loop, virtual, record(offset=11), 5.0, has_left=None)
    loop.polls(is_ended=False, is_shutdown=False, has_left=None)


def test_a_slow_record_of_the_same_partition_is_named_once_a_minute(loop, virtual, caplog):
    for offset in range(30):
        handled(loop, virtual, record(offset=offset), 5.0)
    named = [line.split("at offset ")[1].split(",")[0] for line in caplog.messages]
    assert named == ["0", "12", "24"]


def test_a_slow_record_is_known_until_its_partition_has_passed_it(loop, virtual):
    handled(loop, virtual, record(3, 7), 5.0)
    handled(loop, virtual, record(4, 1), 0.1)
    handled(loop, virtual, record(3, 6), 0.1)
    assert loop.slow == {TopicPartition("in", 3): 7}
    handled(loop, virtual, record(3, 7), 0.1)
    assert loop.slow == {}


def test_the_pause_of_a_record_that_was_named_is_not_reported_too(loop, virtual, caplog):
    loop.delivered()
    handled(loop, virtual, record(), 5.0)
    assert loop.polls(is_ended=False, is_shutdown=False)
    [line] = caplog.messages
    assert line.endswith("raise the limit, or make the function faster")
    assert "max_poll_records" not in line


def test_a_record_above_the_session_alone_is_no_reason_for_smaller_batches(virtual, made, caplog):
    loop = made(session_timeout_ms=3000)
    loop.delivered()
    for each in (0.1, 3.5):
        handled(loop, virtual, record(), each)
    assert loop.polls(is_ended=False, is_shutdown=False)
    [line] = caplog.messages
    assert "above session_timeout_ms=3000" in line
    assert line.endswith("a single record took so long, so raise the limit")


def test_settings_have_the_names_of_their_client(virtual, made, poll, caplog):
    loop = made(
        setting_names={"max_poll_interval_ms": "max.poll.interval.ms", "max_poll_records": "size"},
    )
    poll(2, 5.0, loop)
    loop.delivered()
    handled(loop, virtual, record(), 5.0)
    pause, slow = caplog.messages
    assert "above max.poll.interval.ms=4000: " in pause
    assert pause.endswith("; lower size, or raise the limit")
    assert "above max.poll.interval.ms=4000: " in slow
