"""Three members with query servers."""

import pytest

from tests.assignor.embedding.serving.members import Group


@pytest.fixture(scope="module")
def _started(clock):
    made = Group()
    with made.resources:
        for name in ("one", "two", "three"):
            made.start(name, made.reserved_port())
        yield made


@pytest.fixture
def group(_started):
    _started.reset()
    return _started
