"""The whole matrix against a fresh simulation, and KIP-268's table cell by cell."""

from pathlib import Path

import pytest

from system_tests.matrix.evidence import gather, gather_many
from system_tests.matrix.expectation import CellOutcome, all_pairs
from system_tests.matrix.kip268 import kip268_cells, kip268_pairs
from system_tests.matrix.store import read, verdict_of

STORED = Path(__file__).resolve().parents[2] / "docs" / "upgrades.json"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_stored_matrix_is_what_the_simulator_shows_today():
    pairs = tuple(dict.fromkeys((*all_pairs(), *kip268_pairs())))
    fresh, objections = {}, []
    for evidence in gather_many(pairs):
        fresh[evidence.old, evidence.new] = verdict_of(evidence)
        objections += evidence.disagreements
    assert objections == []
    assert fresh == read(STORED), "rolling-bounce matrix --write docs/upgrades.json"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.kip("268-15", "sim")
def test_every_cell_of_the_kip_is_simulated_with_and_without_the_backport():
    seen = {}
    for cell in kip268_cells():
        for variant in cell.variants:
            if variant.expected is None:
                assert (cell.row, cell.column) == ("0.10.0.x", "0.10.1.x") or (
                    cell.column == "0.10.1.x"
                )
                continue
            assert variant.reason
            evidence = gather(variant.expected.old, variant.expected.new)
            assert evidence.disagreements == ()
            assert evidence.runs >= 4
            seen[cell.row, cell.column, variant.name] = evidence.outcome
    assert seen["0.10.0.x", "0.10.2.x", "without KAFKA-6054"] is CellOutcome.OFFLINE
    assert seen["0.10.0.x", "0.10.2.x", "with KAFKA-6054"] is CellOutcome.TWO_BOUNCES
    assert seen["2.0.x", "post-2.0.x", "without the fix of KAFKA-8649"] is CellOutcome.BROKEN
    assert seen["2.0.x", "post-2.0.x", "with the fix of KAFKA-8649"] is CellOutcome.ONE_BOUNCE
