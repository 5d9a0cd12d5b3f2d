"""A broker of its own for each test, and no member of a test that runs in the next one."""

import contextlib

import pytest

from system_tests.broker import running_broker
from tests.assignor.adapters.rebootstrap.clusters import BEHIND_ONE_ADDRESS, STARTED, close_all


@pytest.fixture(autouse=True)
def no_member_is_left_over():
    yield
    while STARTED:
        with contextlib.suppress(AssertionError):
            STARTED.pop().stop()


@pytest.fixture
def broker(clock):
    with running_broker(BEHIND_ONE_ADDRESS) as running:
        yield running


@pytest.fixture
def closed():
    """Returns its argument, a client that is closed when the test has ended, or failed."""
    clients = []

    def closing(client):
        clients.append(client)
        return client

    yield closing
    close_all(*clients)
