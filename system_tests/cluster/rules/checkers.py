"""The rules that no cluster may break: functions over what happened so far and what happens now.

A rule looks at the evidence before a happening and at the happening, and returns the sentence of
what is broken, or None. The last two look at a whole trace: it comes to rest, at what was promised.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from system_tests.cluster.events import Happening
from system_tests.cluster.nodes.programs import Realm
from system_tests.cluster.rules import log, nodes
from system_tests.cluster.rules.evidence import Evidence
from system_tests.sim import Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftRule:
    """One rule: its name, what it promises, and the check."""

    name: str
    promise: str
    check: Callable[[Evidence, Happening], str | None]


KRAFT_RULES: Final = tuple(
    KraftRule(name=name, promise=promise, check=check)
    for name, promise, check in (
        (
            "only what was asked",
            "a level changes by an accepted request or the format, never by a refusal or a dry run",
            log.only_what_was_asked,
        ),
        (
            "every live broker can",
            "a level is finalized only if all support it",
            log.brokers_can,
        ),
        ("requirements hold", "no feature without what it requires", log.requirements_hold),
        ("a majority can", "and so does a majority of the quorum", log.majority_can),
        (
            "safe is lossless",
            "only an unsafe downgrade loses anything, and the operator is told",
            log.safe_is_lossless,
        ),
        (
            "rewritten at the level",
            "what a node writes again is what the level knows, and it says what was dropped",
            nodes.rewritten_at_the_level,
        ),
        (
            "snapshot first",
            "a snapshot right before the change, the state again, and only then in use",
            nodes.snapshot_first,
        ),
        (
            "only finalized",
            "no node goes by a level that is not committed",
            nodes.only_finalized,
        ),
        ("only supported", "no node goes by a level that it lacks", nodes.only_supported),
        ("kept out", "no broker is let in that lacks a finalized level", nodes.kept_out),
        (
            "who cannot leaves",
            "who reads a level that it lacks ends: unregistered, resigned",
            nodes.who_cannot_leaves,
        ),
        (
            "minimums hold",
            "a deprecated minimum rises when all nodes have it, never falls, and is kept",
            log.floors_hold,
        ),
        ("readable", "nobody is sent what its program cannot read", nodes.readable),
        (
            "acknowledged is committed",
            "an acknowledged request is in the log, one step of the epoch",
            log.acknowledged,
        ),
        (
            "the group goes on",
            "no member goes by what is not finalized, and none goes back for a stale broker",
            nodes.group_goes_on,
        ),
        (
            "one rebalance",
            "the group rebalances once for a change of levels",
            nodes.one_rebalance,
        ),
        (
            "acknowledged stays",
            "at rest the cluster is at what was committed",
            nodes.acknowledged_stays,
        ),
        (
            "comes to rest",
            "every step ends with all nodes at the same levels",
            nodes.comes_to_rest,
        ),
    )
)
"""Every rule, checked at every happening."""


def check_kraft(
    trace: Sequence[Happening], realm: Realm, rules: Sequence[KraftRule] = KRAFT_RULES
) -> Iterator[Broken]:
    """Yield every rule that a trace breaks, each once, with the first time it was broken."""
    evidence = Evidence(realm=realm)
    seen: set[str] = set()
    for one in trace:
        for rule in rules:
            if rule.name in seen:
                continue
            sentence = rule.check(evidence, one)
            if sentence is not None:
                seen.add(rule.name)
                yield Broken(rule=rule.name, at_ms=one.at_ms, sentence=sentence)
        evidence.add(one)
