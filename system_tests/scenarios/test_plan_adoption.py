"""The leader of a live group takes a plan that another job has made of its snapshot."""

import pytest

from system_tests.support.plan_adoption import GROUPS, HEADER, adopt_plan

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("client", "protocol"), [g for g in GROUPS if g[1] == "cooperative" or g[0] == "aiokafka"]
)
def test_a_plan_is_taken(client, protocol, tmp_path):
    """The cooperative groups have stores, the eager ones none."""
    has_stores = protocol == "cooperative"
    found = adopt_plan(client, protocol, has_stores=has_stores, directory=tmp_path)
    print(f"{HEADER}\n{found}")  # noqa: T201 shown with -s, and where the test fails
    assert found.planned == 6
    assert found.rebalances is not None
