"""All checkers of simulated runs, and the fault that each of them notices best."""

from typing import Final

from system_tests.cluster import KRAFT_RULES
from system_tests.levels import LEVEL_RULES
from system_tests.sim import DIMENSION_RULES, SAFETY, TOPOLOGY_RULES
from tests.planted.faults import Fault, read_faults
from tests.planted.results import read_results
from tests.planted.runs import NOT

LIVENESS: Final = ("settles", "final versions", "version rebalances", "pauses within the bound")
CHECKERS: Final = {
    "every group": (*(rule.name for rule in SAFETY), *LIVENESS),
    "groups with dimensions": tuple(rule.name for rule in DIMENSION_RULES),
    "changed topologies": tuple(rule.name for rule in TOPOLOGY_RULES),
    "groups whose levels change": tuple(rule.name for rule in LEVEL_RULES),
    "clusters": tuple(rule.name for rule in KRAFT_RULES),
}
"""What is simulated -> the names of its checkers."""


def best_fault(checker: str) -> tuple[Fault, str, tuple[str, ...]]:
    """Return a fault, the command in which a checker reports it, and the others that report it too.

    It is the one with the fewest others, by the stored results; of several the checker's own one.

    Raises:
        LookupError: the checker reports no fault.
    """
    results = read_results()
    found = []
    for fault in read_faults():
        for command in fault.commands:
            noticed = results[fault.name].noticed[command] if fault.name in results else ()
            if checker in noticed:
                others = [r for r in noticed if r != checker and not r.startswith(NOT)]
                found.append((fault, command, tuple(others)))
    if not found:
        raise LookupError(f"no fault of tests/planted is reported by {checker!r}")
    return min(found, key=lambda each: (len(each[2]), each[0].checker != checker))
