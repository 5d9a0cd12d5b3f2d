"""A poll loop without a client, in virtual time."""

from types import SimpleNamespace

import pytest
from aiokafka import errors as aio_errors
from kafka import errors as kp_errors

from assignor.embedding.loops import PollLoop

KAFKA = (kp_errors.KafkaError, aio_errors.KafkaError)


@pytest.fixture
def virtual():
    return SimpleNamespace(now_s=0.0)


@pytest.fixture
def made(virtual):
    """Make a loop whose clock is `virtual`."""

    def make(**more):
        given = {"max_poll_interval_ms": 4000, "max_poll_records": 500, "client_errors": KAFKA}
        return PollLoop(**given | more, now=lambda: virtual.now_s)

    return make


@pytest.fixture
def loop(made):
    return made()


@pytest.fixture
def poll(loop, virtual):
    """A poll that returns so many records, which take so long; return the size of the next one."""

    def polled(records, took_s, of=loop):
        assert of.polls(is_ended=False, is_shutdown=False)
        of.delivered(records)
        virtual.now_s += took_s
        assert of.polls(is_ended=False, is_shutdown=False)
        return of.max_records

    return polled
