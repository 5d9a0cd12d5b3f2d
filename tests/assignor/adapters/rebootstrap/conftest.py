"""No member of a test runs in the next test."""

import contextlib

import pytest

from tests.assignor.adapters.rebootstrap.clusters import STARTED


@pytest.fixture(autouse=True)
def no_member_is_left_over():
    yield
    while STARTED:
        with contextlib.suppress(AssertionError):
            STARTED.pop().stop()
