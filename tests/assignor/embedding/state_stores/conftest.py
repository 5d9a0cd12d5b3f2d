"""A cluster with some input, and members on it."""

import pytest

from tests.assignor.embedding.state_stores.logs import WORDS, Cluster, Member


@pytest.fixture
def cluster():
    made = Cluster()
    made.write(*WORDS, *WORDS[:4])
    return made


@pytest.fixture
def member(cluster, tmp_path):
    members = []

    def make(name="one", **settings):
        state_dir = tmp_path / name
        state_dir.mkdir(exist_ok=True)
        members.append(Member(cluster, state_dir=state_dir, **settings))
        return members[-1]

    yield make
    for made in members:
        made.stores.close()
