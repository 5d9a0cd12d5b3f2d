"""Nothing of a test goes on in the next one."""

import contextlib

import pytest

from tests.assignor.adapters.rebootstrap.clusters import STARTED


@pytest.fixture(autouse=True)
def no_member_is_left_over():
    yield
    while STARTED:
        with contextlib.suppress(AssertionError):
            STARTED.pop().stop()
