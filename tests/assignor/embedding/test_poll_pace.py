"""Pauses between two polls: which are too long, and how they are reported."""

from types import SimpleNamespace

import pytest

from assignor.embedding.loops import PollPace

LIMITS = {"max_poll_interval_ms": 30_000, "session_timeout_ms": 6_000}


@pytest.fixture
def virtual():
    return SimpleNamespace(now_s=0.0)


@pytest.fixture
def pace(virtual):
    return PollPace(**LIMITS, now=lambda: virtual.now_s)


def pause(pace, virtual, seconds):
    pace.poll_ended()
    virtual.now_s += seconds
    return pace.poll_begins()


def test_a_short_pause_is_no_news(pace, virtual):
    assert pace.poll_begins() == ""
    assert [pause(pace, virtual, seconds) for seconds in (0, 1, 6)] == ["", "", ""]


def test_a_pause_above_the_session_says_both_numbers_and_what_to_do(pace, virtual):
    sentence = pause(pace, virtual, 6.5)
    assert sentence.startswith("6.5 s passed between two polls, above session_timeout_ms=6000: ")
    assert sentence.endswith("; lower max_poll_records, or raise the limit")


def test_a_pause_that_was_a_wait_for_brokers_says_so(virtual):
    def remedy(handled_s):
        pace = PollPace(**LIMITS, now=lambda: virtual.now_s)
        pace.poll_ended()
        virtual.now_s += 30.0
        return pace.poll_begins(handled_s=handled_s).rpartition("; ")[2]

    assert remedy(0.2) == (
        "the function that processes records took 0.2 s of it, and the rest was waited for brokers "
        "and the disk: look for a broker that does not answer"
    )
    assert remedy(15.0) == remedy(None) == "lower max_poll_records, or raise the limit"


def test_a_pause_in_which_most_was_a_wait_for_brokers_does_not_blame_the_function(pace, virtual):
    for waited_s, blamed in ((20.0, "20.0 s of it was waited for brokers"), (10.0, "a single")):
        pace.poll_ended()
        virtual.now_s += 31
        remedy = pace.poll_begins(1, waited_s=waited_s).rpartition("; ")[2]
        assert remedy.startswith(blamed)


def test_a_pause_above_the_poll_interval_says_so_instead(pace, virtual):
    sentence = pause(pace, virtual, 31)
    assert "above max_poll_interval_ms=30000: this member left the group" in sentence


def test_the_same_is_said_again_for_pauses_twice_as_long(pace, virtual):
    warned = [bool(pause(pace, virtual, seconds)) for seconds in (7, 7, 13, 14, 20, 28, 10)]
    assert warned == [True, False, False, True, False, True, False]


def test_each_pause_above_the_poll_interval_is_named(pace, virtual):
    assert all(pause(pace, virtual, seconds) for seconds in (31, 45, 50, 31))


def test_the_time_in_a_poll_does_not_count(pace, virtual):
    pace.poll_ended()
    assert pace.poll_begins() == ""
    virtual.now_s += 100
    assert pause(pace, virtual, 1) == ""


def test_a_client_that_sends_heartbeats_by_itself_has_one_limit(virtual):
    pace = PollPace(max_poll_interval_ms=30_000, now=lambda: virtual.now_s)
    assert pause(pace, virtual, 29) == ""
    assert "max_poll_interval_ms" in pause(pace, virtual, 31)
