"""The rules of the simulated cluster: functions of an event and the evidence before it.

A rule returns a sentence if the event breaks it, else None.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from system_tests.cluster.events import Event
from system_tests.cluster.nodes.programs import Realm
from system_tests.cluster.rules import log, nodes
from system_tests.cluster.rules.evidence import Evidence
from system_tests.sim import Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftRule:
    """One rule: its name, its promise, and its check."""

    name: str
    promise: str
    check: Callable[[Evidence, Event], str | None]


KRAFT_RULES: Final = tuple(
    KraftRule(name=name, promise=promise, check=check)
    for name, promise, check in (
        (
            "only what was asked",
            "a level changes only by an accepted request or by formatting",
            log.only_what_was_asked,
        ),
        (
            "every live broker can",
            "a level is finalized only if every registered broker supports it",
            log.brokers_can,
        ),
        (
            "requirements hold",
            "a feature is finalized only with the features that it requires",
            log.requirements_hold,
        ),
        (
            "a majority can",
            "a level is accepted only if a majority of the quorum supports it",
            log.majority_can,
        ),
        (
            "safe is lossless",
            "only an unsafe downgrade loses content, and its response says so",
            log.safe_is_lossless,
        ),
        (
            "rewritten at the level",
            "a rewritten state holds only what the level knows, and lists what was dropped",
            nodes.rewritten_at_the_level,
        ),
        (
            "snapshot first",
            "a level is used only after a snapshot of the old state and a rewrite of the state",
            nodes.snapshot_first,
        ),
        (
            "only finalized",
            "no node uses a level that is not committed",
            nodes.only_finalized,
        ),
        ("only supported", "no node uses a level that it does not support", nodes.only_supported),
        (
            "kept out",
            "no broker is registered that does not support a finalized level",
            nodes.kept_out,
        ),
        (
            "who cannot leaves",
            "a node that reads a level that it does not support unregisters or resigns, and stops",
            nodes.unsupported_leaves,
        ),
        (
            "minimums hold",
            "a deprecated minimum rises when all nodes have it, never falls, and is kept",
            log.minimums_hold,
        ),
        ("readable", "no node is sent records that its release cannot read", nodes.readable),
        (
            "acknowledged is committed",
            "an acknowledged request is in the log and increments the epoch by one",
            log.acknowledged,
        ),
        (
            "the group continues",
            "members use finalized levels only, and never an older epoch",
            nodes.group_continues,
        ),
        (
            "one rebalance",
            "the group rebalances once for a change of levels",
            nodes.one_rebalance,
        ),
        (
            "acknowledged stays",
            "at rest the cluster has the committed levels",
            nodes.acknowledged_stays,
        ),
        (
            "comes to rest",
            "every step ends with all nodes at the same levels",
            nodes.comes_to_rest,
        ),
    )
)
"""All rules, checked at every event."""


def check_kraft(
    trace: Sequence[Event], realm: Realm, rules: Sequence[KraftRule] = KRAFT_RULES
) -> Iterator[Broken]:
    """Yield every rule that a trace breaks, each once, at the first event that breaks it."""
    evidence = Evidence(realm=realm)
    broken: set[str] = set()
    for event in trace:
        for rule in rules:
            if rule.name in broken:
                continue
            sentence = rule.check(evidence, event)
            if sentence is not None:
                broken.add(rule.name)
                yield Broken(rule=rule.name, at_ms=event.at_ms, sentence=sentence)
        evidence.add(event)
