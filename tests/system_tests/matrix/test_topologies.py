"""The changes of a topology in the matrix: each cell is what it says, and breaks no rule."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from assignor.rebalance.forms import selection
from system_tests.cli.main import main
from system_tests.matrix import topologies
from system_tests.matrix.topologies import (
    TOPOLOGY_FAULTS,
    gather_topologies,
    gather_topology,
    seeds_of,
    topology_cells,
)
from system_tests.sim import BounceOptions, run_bounce
from tests.nightly import sample


def run(arguments):
    return CliRunner().invoke(main, ["matrix", *arguments.split(), "--workers", "1"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_cell_breaks_a_rule():
    cells = sample(topology_cells(), every=5, reason="15 s for all cells")
    assert [e.broken for e in gather_topologies(cells, workers=1) if e.broken] == []


def test_a_seed_of_a_cell_draws_what_the_cell_says():
    cells = topology_cells()
    assert len(set(cells)) == len(cells) == 4 * 2 * 2 * 2 * len(TOPOLOGY_FAULTS)
    for cell in (cells[1], cells[-1]):
        [seed] = seeds_of(cell, 1)
        options = run_bounce(BounceOptions(seed=seed, topology=cell.kind)).options
        drawn = (options.carries_both, options.dimensions.cooperative, options.static)
        assert drawn == (cell.carries_both, cell.cooperative, cell.static)


def test_a_cell_that_breaks_a_rule_says_how_to_replay_it(monkeypatch):
    monkeypatch.setattr(
        selection, "decide_unit", lambda *_, **__: replace(decided, forms=frozenset())
    )
    cell = next(c for c in topology_cells() if c.row == "change, one" and not c.static)
    found = gather_topology(cell, seeds=1)
    assert "simulate --seed" in found.broken[0]
    assert "--topology change" in found.broken[0]


decided = selection.decide_unit(
    selection.FamilyDecision(forms=frozenset(), wanted=frozenset(), version=None, rule="", why=""),
    {},
    {},
    {},
)


def test_the_command_prints_a_table_and_json(monkeypatch):
    cells = topology_cells()[:2]
    monkeypatch.setattr("system_tests.cli.matrix.topology_cells", lambda _: cells)
    monkeypatch.setattr(topologies, "_SEEDS", 1)
    done = run("--topology add")
    assert done.exit_code == 0, done.stderr
    assert "2 of 2 cells ok" in done.stdout
    rows = json.loads(run("--topology add --format json").stdout)
    assert [row["faults"] for row in rows] == [[], ["crash"]]
    assert {row["kind"] for row in rows} == {"add"}


@pytest.mark.parametrize("other", ["--kip268", "--from 3.1", "--format markdown", "--write x"])
def test_it_is_a_table_of_its_own(other):
    done = run(f"--topology all {other}")
    assert done.exit_code == 2
    assert "--topology is a table of its own" in done.stderr
