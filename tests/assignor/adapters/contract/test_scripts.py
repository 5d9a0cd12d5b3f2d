"""Scripted clients do what the real ones do, on the embedded broker, script by script."""

import pytest

from tests.assignor.adapters.contract.traces import CLIENTS, real, scripted, scripts_of, trace_of
from tests.nightly import sample

ALL = [(client, name) for client in CLIENTS for name in scripts_of(client)]


@pytest.mark.parametrize(
    ("client", "name"),
    sample(ALL, every=12, reason="a broker and a client for each script"),
)
@pytest.mark.usefixtures("clock")
def test_a_scripted_client_is_as_the_real_one(client, name):
    wanted = trace_of(name, client, scripted)
    assert trace_of(name, client, real, wanted) == wanted


def test_errors_move_the_position_of_librdkafka_up_to_2_13_0():
    [newer, older] = [
        trace_of("codec first", "confluent", lambda c, r, v=v: scripted(c, r, v))
        for v in ((2, 13, 2), (2, 13, 0))
    ]
    assert [positions for _, _, positions in newer] == [{}, {}, {}]
    assert [positions for _, _, positions in older] == [{}, {0: 1}, {0: 1}]
