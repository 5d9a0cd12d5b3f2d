"""A session that runs the blocks of a page."""

import pytest

from tests.docs.page_session import PageSession


@pytest.fixture
def session(clock, tmp_path):
    """Return a session in a directory of its own; its commands are killed after the test."""
    with PageSession(tmp_path) as session:
        yield session
