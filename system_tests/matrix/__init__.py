"""The upgrade matrix: expected and simulated outcome of every pair of releases."""

from system_tests.matrix.evidence import gather_many
from system_tests.matrix.expectation import (
    Kind,
    all_pairs,
    expect,
    kinds,
    pairs_between,
    routes,
)
from system_tests.matrix.kip268 import KipCell, kip268_cells, kip268_pairs
from system_tests.matrix.markdown import render_page
from system_tests.matrix.render import (
    grid_lines,
    kip_document,
    kip_lines,
    legend_lines,
    pair_document,
    pair_lines,
)
from system_tests.matrix.store import StoreError, Verdict, read_verdicts, to_text, verdict_of
from system_tests.matrix.topologies import (
    gather_topologies,
    topology_cells,
    topology_document,
    topology_lines,
)

__all__ = [
    "Kind",
    "KipCell",
    "StoreError",
    "Verdict",
    "all_pairs",
    "expect",
    "gather_many",
    "gather_topologies",
    "grid_lines",
    "kinds",
    "kip268_cells",
    "kip268_pairs",
    "kip_document",
    "kip_lines",
    "legend_lines",
    "pair_document",
    "pair_lines",
    "pairs_between",
    "read_verdicts",
    "render_page",
    "routes",
    "to_text",
    "topology_cells",
    "topology_document",
    "topology_lines",
    "verdict_of",
]
