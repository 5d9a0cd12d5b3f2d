"""Plant one fault in the code, and require that the checker for it fails (changed topologies).

As `dimensions`, for bounces that change the topology: docs/planted.json, docs/planted.md.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import click

from assignor.rebalance.forms import selection
from assignor.rebalance.forms.group import GroupTopologies
from assignor.rebalance.leader import withholding
from assignor.rebalance.leader.generation import Generation
from probing.topologies import UNIT_RULES, FamilyNumbers, form_rule
from system_tests.sim import BounceOptions, replay_command, run_bounce
from system_tests.topology_changes import ChangeKind
from tests.system_tests.planted.dimensions import Fault, red
from tests.system_tests.planted.rules import STORED

SEEDS: Final = range(80)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFault(Fault):
    """A planted fault; options of `simulate`, besides --topology and the seed."""

    kind: ChangeKind = ChangeKind.CHANGE


def _all_can(original):
    def shares(tasks, carriers, ids):
        all_members = frozenset(carrier.member_id for carrier in carriers)
        return tuple(replace(s, members=all_members) for s in original(tasks, carriers, ids))

    return shares


def _without(rules, name):
    left = [rule for rule in rules if rule.name != name]
    return lambda numbers: next(rule for rule in left if rule.holds(numbers))


def _oldest(numbers):
    return replace(form_rule(numbers), wanted=lambda n: n.live[0])


def _asks_for_more(original):
    def joined(self, placements):
        placement = original(self, placements)
        more = dict.fromkeys(placement.active_by_member, 0) if self.knowledge.generation % 4 else {}
        return replace(placement, next_rebalance_ms={**placement.next_rebalance_ms, **more})

    return joined


FAULTS: Final = (
    TopologyFault(
        checker="runs what it carries",
        why="the leader takes every member to be able to run every task",
        place=(selection, "_shares"),
        broken=_all_can,
        options={},
        kind=ChangeKind.ADD,
    ),
    TopologyFault(
        checker="one form",
        why="the leader does not withhold tasks from the next owner",
        place=(withholding, "_is_owned_elsewhere"),
        broken=lambda _: lambda *_: False,
        options={},
    ),
    TopologyFault(
        checker="no return",
        why="no memory of a reached version is believed",
        place=(selection, "decide_forms"),
        broken=lambda original: partial(original, believe=lambda *_: {}),
        options={"faults": frozenset({"crash"})},
    ),
    TopologyFault(
        checker="owner where possible",
        why="orphaned partitions wait, though a member has the wanted form",
        place=(selection, "decide_unit"),
        broken=lambda original: partial(original, choose=_without(UNIT_RULES, "orphaned")),
        options={},
    ),
    TopologyFault(
        checker="switches together",
        why="a version is reached although not all members carry it",
        place=(FamilyNumbers, "is_held_back"),
        broken=lambda _: property(lambda _numbers: False),
        options={},
    ),
    TopologyFault(
        checker="keeps a share",
        why="the leader forgets what the members ran that it asks for their topology",
        place=(GroupTopologies, "asked_after"),
        broken=lambda _: lambda self, *_: self,
        options={"static": True},
    ),
    TopologyFault(
        checker="few rebalances",
        why="the leader asks for rebalances that nothing needs",
        place=(Generation, "joined_placement"),
        broken=_asks_for_more,
        options={},
    ),
    TopologyFault(
        checker="ends as new",
        why="the lowest version that members carry is wanted",
        place=(selection, "decide_forms"),
        broken=lambda original: partial(original, choose=_oldest),
        options={},
    ),
)


def bounce_of(fault: TopologyFault, seed: int) -> BounceOptions:
    """Return the bounce of a seed."""
    return BounceOptions(seed=seed, topology=fault.kind, **fault.options)


def seed_of(fault: TopologyFault) -> int:
    """Return the first seed whose bounce is good, but breaks the checker's rule with the fault.

    Raises:
        LookupError: no seed of `SEEDS`.
    """
    for seed in SEEDS:
        options = bounce_of(fault, seed)
        with fault.planted():
            is_found = fault.checker in red(options)
        if is_found and not red(options):
            return seed
    raise LookupError(f"{fault.checker}: nothing goes red within {len(SEEDS)} seeds")


def measure(fault: TopologyFault) -> Mapping[str, Any]:
    """Return the stored result of a fault."""
    options = bounce_of(fault, seed_of(fault))
    with fault.planted():
        others = [name for name in red(options) if name != fault.checker]
    bounce = replay_command(run_bounce(options)).removeprefix("rolling-bounce ")
    return {
        "checker": fault.checker,
        "why": fault.why,
        "seed": options.seed,
        "bounce": bounce,
        "others": others,
        "search": "",
    }


@click.command(help=__doc__)
def main() -> None:
    """Measure all faults and write the results."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    stored["topologies"] = []
    for fault in FAULTS:
        stored["topologies"].append(measure(fault))
        click.echo(f"{stored['topologies'][-1]}", err=True)
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
