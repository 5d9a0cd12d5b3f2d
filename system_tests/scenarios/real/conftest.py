"""All tests here run real brokers or JVM members."""

import pytest


@pytest.fixture(autouse=True)
def _real_processes(clock):
    """Start and end processes."""
