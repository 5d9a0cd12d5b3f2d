"""Without any broker, a supervised client uses little CPU; the benchmark measures a minute."""

import pytest

from benchmarks.clients.rebootstrap import CLIENTS, gone, most_attempts

SECONDS = 2
# The goal is 5 %, which the benchmark checks; a client that loops takes a whole core.
CPU_MAX = 25.0

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow]


@pytest.mark.parametrize("client", CLIENTS)
def test_attempts_follow_the_back_off_and_use_little_processor_time(client):
    found = gone(client, supervised=True, seconds=SECONDS)
    assert 0 < found["attempts"] <= most_attempts(found["seconds"])
    assert found["cpu"] < CPU_MAX
