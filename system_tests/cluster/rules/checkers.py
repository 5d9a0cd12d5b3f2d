"""The checkers of the simulated cluster: functions of an event and the evidence before it."""

from collections.abc import Sequence
from typing import Any, Final

from system_tests.cluster.events import (
    Acknowledged,
    Activated,
    Asked,
    Committed,
    Left,
    Published,
    Regarded,
    Rested,
    Restless,
    Rewritten,
    Spoke,
    Started,
)
from system_tests.cluster.nodes.programs import Realm
from system_tests.cluster.rules import log, nodes
from system_tests.cluster.rules.evidence import Evidence
from system_tests.engine import Broken, Checker, check_events
from system_tests.sim import Adopted, Looked

KRAFT_RULES: Final = (
    Checker("only what was asked", log.only_what_was_asked, (Committed,)),
    Checker("every live broker can", log.brokers_can, (Committed,)),
    Checker("requirements hold", log.requirements_hold, (Committed,)),
    Checker("a majority can", log.majority_can, (Asked,)),
    Checker("safe is lossless", log.safe_is_lossless, (Committed,)),
    Checker("rewritten at the level", nodes.rewritten_at_the_level, (Rewritten,)),
    Checker("snapshot first", nodes.snapshot_first, (Published,)),
    Checker("only finalized", nodes.only_finalized, (Published,)),
    Checker("only supported", nodes.only_supported, (Published,)),
    Checker("kept out", nodes.kept_out, (Regarded,)),
    Checker("who cannot leaves", nodes.unsupported_leaves, (Left, Published, Spoke, Activated)),
    Checker("minimums hold", log.minimums_hold, (Committed,)),
    Checker("readable", nodes.readable, (Started, Spoke)),
    Checker("acknowledged is committed", log.acknowledged, (Acknowledged,)),
    Checker("the group continues", nodes.group_continues, (Adopted,)),
    Checker("one rebalance", nodes.one_rebalance, (Looked,)),
    Checker("acknowledged stays", nodes.acknowledged_stays, (Rested,)),
    Checker("comes to rest", nodes.comes_to_rest, (Restless,)),
)
"""All checkers, in the order in which they are asked."""


def check_kraft(trace: Sequence[Any], realm: Realm) -> list[Broken]:
    """Return every rule that a trace breaks, each once, at the first event that breaks it."""
    return check_events(trace, Evidence(realm=realm), KRAFT_RULES, once=True)
