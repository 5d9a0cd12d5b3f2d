"""Input with records that the function of a member does not understand."""

import pytest

from tests.assignor.embedding.state_stores.bad_records.poison import POISON, fill
from tests.assignor.embedding.state_stores.logs import Cluster


@pytest.fixture
def cluster():
    made = Cluster()
    fill(made, ["one", "two", POISON, "three", POISON, "four", "one"])
    return made
