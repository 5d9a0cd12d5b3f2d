"""No member of a test runs in the next test."""

import contextlib

import pytest

from tests.assignor.adapters.rebootstrap.clusters import STARTED, close_all


@pytest.fixture(autouse=True)
def no_member_is_left_over():
    yield
    while STARTED:
        with contextlib.suppress(AssertionError):
            STARTED.pop().stop()


@pytest.fixture
def closed():
    """Returns its argument, a client that is closed when the test has ended, or failed."""
    clients = []

    def closing(client):
        clients.append(client)
        return client

    yield closing
    close_all(*clients)
