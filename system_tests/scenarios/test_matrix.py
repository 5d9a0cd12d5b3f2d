"""The whole matrix against a fresh simulation, and KIP-268's table cell by cell."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from system_tests.cli.matrix import matrix
from system_tests.matrix.evidence import gather_many
from system_tests.matrix.expectation import CellOutcome, all_pairs
from system_tests.matrix.kip268 import kip268_cells, kip268_pairs
from system_tests.matrix.store import read_verdicts, verdict_of
from tests.nightly import sample

OLD = {
    "0.10.0.x": "0.10.0.1",
    "0.10.1.x": "0.10.1.1",
    "0.10.2.x": "0.10.2.1",
    "0.11.0.x": "0.11.0.2",
    "1.0.x": "1.0.1",
    "1.1.x": "1.1.0",
}
# Each column of the KIP without the backport of KAFKA-6054 and with it.
NEW = {
    "0.10.2.x": ("0.10.2.1", "0.10.2.2"),
    "0.11.0.x": ("0.11.0.2", "0.11.0.3"),
    "1.0.x": ("1.0.1", "1.0.2"),
    "1.1.x": ("1.1.0", "1.1.1"),
}
WITHOUT, WITH = "without KAFKA-6054", "with KAFKA-6054"
BROKEN, FIXED = "without the fix of KAFKA-8649", "with the fix of KAFKA-8649"
PROBED = {("2.0.x", ""): "2.0.1", ("post-2.0.x", BROKEN): "2.3.0", ("post-2.0.x", FIXED): "2.3.1"}
BRIDGES = {"0.11.0.2": "0.10.2.2", "1.0.1": "0.11.0.3", "1.1.0": "1.0.2"}
STORED = Path(__file__).resolve().parents[2] / "tests/system_tests/matrix/upgrades.json"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_stored_matrix_is_what_the_simulator_shows_today():
    pairs = sample(
        tuple(dict.fromkeys((*all_pairs(), *kip268_pairs()))),
        every=15,
        reason="two and a half minutes for all pairs of releases",
    )
    fresh, objections = {}, []
    for evidence in gather_many(pairs, workers=1):
        fresh[evidence.old, evidence.new] = verdict_of(evidence)
        objections += evidence.disagreements
    assert objections == []
    stored = read_verdicts(STORED)
    assert set(stored) == {*all_pairs(), *kip268_pairs()}
    assert fresh == {pair: stored[pair] for pair in fresh}, (
        "rolling-bounce matrix --write tests/system_tests/matrix/upgrades.json"
    )


@pytest.fixture(scope="module")
def evidence():
    """Old and new release -> what the simulator shows, of every cell of the KIP."""
    return {(found.old, found.new): found for found in gather_many(kip268_pairs(), workers=1)}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.kip("268-15", "sim")
def test_every_cell_of_the_kip_is_simulated_with_and_without_the_backport(evidence):
    seen = {}
    for cell in kip268_cells():
        for variant in cell.variants:
            if variant.expected is None:
                assert (cell.row, cell.column) == ("0.10.0.x", "0.10.1.x") or (
                    cell.column == "0.10.1.x"
                )
                continue
            assert variant.reason
            found = evidence[variant.expected.old, variant.expected.new]
            assert found.disagreements == ()
            assert found.runs >= 4
            seen[cell.row, cell.column, variant.name] = found.outcome
    assert seen["0.10.0.x", "0.10.2.x", "without KAFKA-6054"] is CellOutcome.OFFLINE
    assert seen["0.10.0.x", "0.10.2.x", "with KAFKA-6054"] is CellOutcome.TWO_BOUNCES
    assert seen["2.0.x", "post-2.0.x", "without the fix of KAFKA-8649"] is CellOutcome.BROKEN
    assert seen["2.0.x", "post-2.0.x", "with the fix of KAFKA-8649"] is CellOutcome.ONE_BOUNCE


def pinned(old, new, version):
    """The path and the reason if the first of two bounces is pinned to the series before."""
    series = old.rsplit(".", 1)[0]
    return (
        f"{old} -> {new}: two bounces, upgrade.from={series} in the first",
        (
            f"members of {old} read up to version {version} without version probing: set"
            f" upgrade.from={series} on {new} for the first rolling bounce, and remove it in"
            " the second one"
        ),
    )


def expected_cells():
    """(row, column, variant) -> the path and the reason, as in the KIP and the issues."""
    expected = {}
    for at, (row, old) in enumerate(OLD.items()):
        for (column, name), new in PROBED.items():
            expected[row, column, name] = pinned(old, new, 1 if row == "0.10.0.x" else 2)
        for column, patches in tuple(NEW.items())[max(at - 1, 0) :]:
            for name, new in zip((WITHOUT, WITH), patches, strict=True):
                expected[row, column, name] = (
                    f"{old} -> {new}: one bounce",
                    f"{old} and {new} both write version 2: one rolling bounce, no setting",
                )
    old = OLD["0.10.0.x"]
    for column, (without, backported) in (("0.10.1.x", ("0.10.1.1", "")), *NEW.items()):
        bridge = BRIDGES.get(without)
        expected["0.10.0.x", column, WITHOUT] = (
            f"{old} -> {without}: "
            + (f"bridge needed: through {bridge}" if bridge else "offline only"),
            (
                f"members of {old} read up to version 1 without version probing, and {without} has"
                " no upgrade.from (KAFKA-6054); "
            ),
        )
        if backported:
            expected["0.10.0.x", column, WITH] = pinned(old, backported, 1)
    expected["0.10.0.x", "0.10.1.x", WITH] = (
        "- no patch of 0.10.1.x has the backport; take 0.10.2.2 or later",
        "",
    )
    expected["2.0.x", "post-2.0.x", BROKEN] = (
        "2.0.1 -> 2.3.0: broken: KAFKA-8649; go through 2.2.2",
        (
            "a leader of 2.3.0 answers with version 4, a member of 2.0.1 copies it and cannot"
            " write it (KAFKA-8649); use one of 2.2.2, 2.3.1, 2.4 instead"
        ),
    )
    expected["2.0.x", "post-2.0.x", FIXED] = (
        "2.0.1 -> 2.3.1: one bounce",
        "version probing finds version 3 while the group is mixed: one rolling bounce, no setting",
    )
    return expected


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.kip("268-15", "sim")
def test_the_command_prints_every_cell_with_its_way_its_reason_and_what_was_simulated(
    evidence, monkeypatch
):
    monkeypatch.setattr(
        "system_tests.cli.matrix.gather_many",
        lambda pairs, **_: (evidence[pair] for pair in pairs),
    )
    done = CliRunner().invoke(matrix, ["--kip268"])
    assert done.exit_code == 0, done.stderr
    _, cells = done.stdout.split("no such patch was released\n\n")
    printed, lines = {}, []
    for line in cells.splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
        else:
            printed[line] = lines = []
    expected = {
        f"{row} to {column}" + (f" ({name})" if name else ""): words
        for (row, column, name), words in expected_cells().items()
    }
    assert set(printed) == set(expected)
    for title, (way, reason) in expected.items():
        assert printed[title][0] == way, title
        if reason:
            assert printed[title][1].startswith(f"why: {reason}"), title
            assert printed[title][2].startswith("simulated: as expected"), title


@pytest.mark.kip("268-15", "sim")
def test_every_cell_of_the_kip_has_its_own_reason():
    expected = expected_cells()
    for cell in kip268_cells():
        for variant in cell.variants:
            way, reason = expected[cell.row, cell.column, variant.name]
            assert variant.reason.startswith(reason or way.removeprefix("- "))
