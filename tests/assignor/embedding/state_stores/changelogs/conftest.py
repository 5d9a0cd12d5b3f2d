"""The owner of a task, which has processed all input."""

import pytest

from tests.assignor.embedding.state_stores.changelogs.losses import OLD, set_ids


@pytest.fixture
def owner(cluster, member):
    set_ids(cluster, OLD)
    made = member("one")
    made.assign()
    made.finish()
    return made
