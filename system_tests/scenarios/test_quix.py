"""A stateful Quix application, unchanged, in processes that start and are killed."""

import os

import pytest

if "TEST_QUIX" not in os.environ:
    pytest.importorskip("quixstreams", reason="needs the extra quix: run `make test-quix`")

from benchmarks.clients.quix.__main__ import ASSIGNORS, broker_of, run
from benchmarks.clients.quix.group import Group
from probing import NEWEST_KAFKA

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]
PARTITIONS = 6


def rows_of(broker, tmp_path, name):
    assignor, options = ASSIGNORS[name]
    with broker_of(broker) as servers:
        rows, is_exact = run(Group(servers, tmp_path, assignor, options, PARTITIONS), words=1200)
    assert is_exact
    return rows


@pytest.mark.parametrize(
    "broker", ["embedded", pytest.param(NEWEST_KAFKA, marks=pytest.mark.real, id="real")]
)
def test_counts_are_exact_and_only_what_must_move_moves(broker, tmp_path):
    rows = rows_of(broker, tmp_path, "streams")
    # 6 partitions: a third process takes 2; a killed one leaves 2; it takes 2 again.
    assert [moved for _, moved, *_ in rows] == [2, 2, 2]
