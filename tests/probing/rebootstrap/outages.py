"""Scenarios: how a client's brokers and names change, and from when on they are usable again."""

from dataclasses import dataclass
from typing import Final

from tests.probing.rebootstrap.client import Answering, Change

UP, STUCK, DEMANDS = Answering.UP, Answering.STUCK, Answering.DEMANDS
FRONT: Final = "front:9092"
OLD: Final = ("a:1", "b:2", "c:3")
NEW: Final = ("d:4", "e:5", "f:6")
AT_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootstrapScenario:
    """One row.

    Attributes:
        name: as tests and reports call it.
        changes: what happens after the quiet beginning.
        usable_ms: from when on the bootstrap servers lead to brokers, for good; None if never.
        extra_ms: what may come on top of trigger and reaction: lookups, set-up timeouts.
        needs: whether the client cannot go on without a rebootstrap.
    """

    name: str
    changes: tuple[Change, ...]
    usable_ms: int | None = AT_MS
    extra_ms: int = 0
    needs: bool = True


def _nodes(answers: Answering, *names: str) -> dict[str, Answering]:
    return dict.fromkeys((FRONT, *names), UP) | dict.fromkeys(names, answers)


FIRST: Final = Change(at_ms=0, nodes=_nodes(UP, *OLD), brokers=OLD, names=(FRONT,))

SCENARIOS: Final = (
    RebootstrapScenario(
        name="all brokers replaced",
        changes=(Change(at_ms=AT_MS, nodes=_nodes(UP, *NEW), brokers=NEW),),
    ),
    RebootstrapScenario(
        name="some brokers replaced",
        changes=(Change(at_ms=AT_MS, nodes=_nodes(UP, "c:3", *NEW), brokers=("c:3", *NEW)),),
        needs=False,
    ),
    RebootstrapScenario(
        name="all gone for half a minute",
        changes=(
            Change(at_ms=AT_MS, nodes={FRONT: Answering.REFUSES}),
            Change(at_ms=35_000, nodes=_nodes(UP, *NEW), brokers=NEW),
        ),
        usable_ms=35_000,
    ),
    RebootstrapScenario(
        name="flapping",
        changes=(
            *(
                Change(at_ms=AT_MS + turn * 700, nodes=_nodes(UP, *(OLD if turn % 2 else ())))
                for turn in range(20)
            ),
            Change(at_ms=20_000, nodes=_nodes(UP, *NEW), brokers=NEW),
        ),
        usable_ms=20_000,
    ),
    RebootstrapScenario(
        name="slow name server",
        changes=(Change(at_ms=AT_MS, nodes=_nodes(UP, *NEW), brokers=NEW, lookup_ms=8_000),),
        extra_ms=8_000,
    ),
    RebootstrapScenario(
        name="names not found for a while",
        changes=(
            Change(at_ms=AT_MS, nodes=_nodes(UP, *NEW), brokers=NEW, names=(), lookup_ms=100),
            Change(at_ms=20_000, names=(FRONT,)),
        ),
        usable_ms=20_000,
    ),
    RebootstrapScenario(
        name="another address behind the name",
        changes=(
            Change(
                at_ms=AT_MS,
                nodes=dict.fromkeys(("other:9092", *NEW), UP),
                brokers=NEW,
                names=("other:9092",),
            ),
        ),
    ),
    RebootstrapScenario(
        name="connections are stuck",  # the motivation of KIP-1102
        changes=(
            Change(
                at_ms=AT_MS,
                nodes=dict.fromkeys((FRONT, *NEW), UP) | dict.fromkeys(OLD, STUCK),
                brokers=NEW,
            ),
        ),
    ),
    RebootstrapScenario(
        name="one connection is stuck, the others are refused",
        changes=(
            Change(
                at_ms=AT_MS,
                nodes=dict.fromkeys((FRONT, *NEW), UP) | {"a:1": STUCK},
                brokers=NEW,
            ),
        ),
    ),
    RebootstrapScenario(
        name="a proxy demands it",
        changes=(
            Change(
                at_ms=AT_MS,
                nodes=dict.fromkeys((FRONT, *NEW), UP) | dict.fromkeys(OLD, DEMANDS),
                brokers=NEW,
            ),
        ),
    ),
    RebootstrapScenario(
        name="a proxy demands it for ever",
        changes=(Change(at_ms=AT_MS, nodes=dict.fromkeys((FRONT, *OLD), DEMANDS)),),
        usable_ms=None,
    ),
    RebootstrapScenario(
        name="nothing happens",
        changes=(),
        needs=False,
    ),
)
