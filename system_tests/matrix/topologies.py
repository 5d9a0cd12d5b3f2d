"""The changes of a topology as a dimension of the matrix: every kind of group, simulated.

A cell is a change, in a group of one kind. What a cell fixes is drawn by a seed elsewhere, so the
seeds of a cell are the first ones that draw it, and every bounce is replayed by a command.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, islice, product
from typing import Any, Final

from assignor.workers import results_of
from system_tests.sim import BounceOptions, drawn_change, run_bounce
from system_tests.topology_changes import ChangeKind

_SEEDS: Final = 4
# (members, partitions): of which each member gets at least one, and tasks have to move.
_WORLDS: Final = ((3, 6), (4, 8), (2, 5))
TOPOLOGY_FAULTS: Final = ((), ("crash",), ("crash", "leader"))
"""Faults while members are bounced; a crash of any member, or also of the leader."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TopologyCell:
    """A change in a group of one kind.

    Attributes:
        kind: of the change.
        carries_both: new programs carry the old topology as well.
        cooperative, static: the members.
        faults: while members are bounced.
    """

    kind: ChangeKind
    carries_both: bool
    cooperative: bool
    static: bool
    faults: tuple[str, ...]

    @property
    def row(self) -> str:
        """The change."""
        return f"{self.kind}, {'both' if self.carries_both else 'one'}"

    @property
    def column(self) -> str:
        """The kind of group."""
        protocol = "cooperative" if self.cooperative else "eager"
        words = [protocol, "static" if self.static else "dynamic", *self.faults]
        return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyCellEvidence:
    """The simulation of one cell: number of bounces, and a sentence for each that broke a rule."""

    cell: TopologyCell
    runs: int
    broken: tuple[str, ...]


def topology_cells(kinds: Sequence[ChangeKind] = tuple(ChangeKind)) -> tuple[TopologyCell, ...]:
    """Return every cell of these changes, sorted."""
    flags = (False, True)
    return tuple(
        TopologyCell(
            kind=kind, carries_both=both, cooperative=cooperative, static=static, faults=faults
        )
        for kind, both, cooperative, static, faults in product(
            sorted(kinds), flags, flags, flags, TOPOLOGY_FAULTS
        )
    )


def seeds_of(cell: TopologyCell, number: int = _SEEDS) -> list[int]:
    """Return the first seeds that draw a cell."""
    wanted = (cell.carries_both, cell.cooperative, cell.static)
    return list(islice((s for s in count() if drawn_change(s)[1:] == wanted), number))


def gather_topology(cell: TopologyCell, *, seeds: int = _SEEDS) -> TopologyCellEvidence:
    """Simulate one cell.

    Args:
        cell: which.
        seeds: number of bounces.
    """
    broken = []
    for place, seed in enumerate(seeds_of(cell, seeds)):
        members, partitions = _WORLDS[place % len(_WORLDS)]
        outcome = run_bounce(
            BounceOptions(
                seed=seed,
                topology=cell.kind,
                members=members,
                partitions=partitions,
                faults=frozenset(cell.faults),
            )
        )
        if outcome.broken:
            first = outcome.broken[0]
            replay = outcome.replay
            broken.append(
                f"{cell.row}, {cell.column}: '{first.rule}' is broken: {first.sentence};"
                f" replay: {replay}"
            )
    return TopologyCellEvidence(cell=cell, runs=seeds, broken=tuple(broken))


def gather_topologies(
    cells: Sequence[TopologyCell], *, workers: int | None = None, seeds: int = _SEEDS
) -> Iterator[TopologyCellEvidence]:
    """Simulate cells in several processes; yield the results in order.

    Args:
        cells: which.
        workers: number of processes; default: one per core. 1: run in this process.
        seeds: bounces of each cell.
    """
    run = partial(gather_topology, seeds=seeds)
    return results_of(run, cells, workers=workers)


def topology_lines(found: Sequence[TopologyCellEvidence]) -> list[str]:
    """Return the cells as text: a row for each change, a column for each kind of group.

    Args:
        found: of all cells.
    """
    by_place = {(e.cell.row, e.cell.column): e for e in found}
    rows = list(dict.fromkeys(e.cell.row for e in found))
    columns = list(dict.fromkeys(e.cell.column for e in found))
    wide = max(map(len, rows))
    lines = [f"{number:>2}  {column}" for number, column in enumerate(columns, 1)]
    head = "".join(f"{number:>4}" for number in range(1, len(columns) + 1))
    lines += ["", f"{'':<{wide}}{head}"]
    for row in rows:
        signs = [_sign(by_place[row, column]) for column in columns]
        lines.append(f"{row:<{wide}}{''.join(f'{sign:>4}' for sign in signs)}")
    good = sum(not e.broken for e in found)
    runs = sum(e.runs for e in found)
    return [
        *lines,
        "",
        "one, both: topologies that a new program carries; ok: no bounce broke a rule; ?: one did",
        f"{good} of {len(found)} cells ok, {runs} bounces",
    ]


def topology_document(found: Sequence[TopologyCellEvidence]) -> list[dict[str, Any]]:
    """Return the cells as JSON types with stable keys."""
    return [
        asdict(e.cell) | {"kind": e.cell.kind.value, "runs": e.runs, "broken": list(e.broken)}
        for e in found
    ]


def _sign(evidence: TopologyCellEvidence) -> str:
    return "?" if evidence.broken else "ok"
