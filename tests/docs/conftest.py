"""A session that runs the blocks of a page."""

import pytest

from system_tests.support.fork_server import ForkServer
from tests.docs.page_session import PageSession


@pytest.fixture(scope="session")
def fork_server(clock):
    """Return a process that has imported what most commands of pages need."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def session(fork_server, tmp_path):
    """Return a session in a directory of its own; its commands are killed after the test."""
    with PageSession(tmp_path, fork_server) as session:
        yield session
