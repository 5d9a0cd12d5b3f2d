"""Pure functions over the reports of members: ownership, records, rebalances, the verdict."""

from system_tests.live.evidence.ownership import (
    DoubleOwnership,
    Incarnation,
    OwnershipInterval,
    double_ownerships,
    ownership_intervals,
)
from system_tests.live.evidence.rebalances import count_rebalances
from system_tests.live.evidence.records import Coverage
from system_tests.live.evidence.verdict import Check, Verdict

__all__ = [
    "Check",
    "Coverage",
    "DoubleOwnership",
    "Incarnation",
    "OwnershipInterval",
    "Verdict",
    "count_rebalances",
    "double_ownerships",
    "ownership_intervals",
]
