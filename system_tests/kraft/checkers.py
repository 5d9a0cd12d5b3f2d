"""The rules that no cluster may break: functions over what happened so far and what happens now.

A rule looks at the evidence before a happening and at the happening, and returns the sentence of
what is broken, or None. The last two look at a whole trace: it comes to rest, at what was promised.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from system_tests.kraft.evidence import Evidence
from system_tests.kraft.happenings import (
    Acknowledged,
    Adopted,
    Asked,
    Committed,
    Diverged,
    Elected,
    Happening,
    Left,
    Loaded,
    Published,
    Rebalanced,
    Registered,
    Rested,
    Restless,
    Rewritten,
    SnapshotWritten,
    Spoke,
    Started,
    Unfenced,
)
from system_tests.kraft.programs import Realm
from system_tests.sim import Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftRule:
    """One rule: its name, what it promises, and the check."""

    name: str
    promise: str
    check: Callable[[Evidence, Happening], str | None]


def _one_log(_evidence: Evidence, one: Happening) -> str | None:
    if isinstance(one, Diverged):
        return f"{one.node} has another batch committed at offset {one.offset}"
    return None


def _only_what_was_asked(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Committed) or not (changes := evidence.changes_of(one)):
        return None
    if evidence.finalized.epoch == 0 and evidence.realm.formatted is not None:
        level = changes.get(evidence.realm.governing)
        if level == evidence.realm.formatted:
            return None
        return f"formatted at {evidence.realm.formatted}, and the log begins at {level}"
    causes = [row for row in evidence.accepted if evidence.expected_changes(row) == changes]
    if causes:
        return _as_allowed(evidence, causes[-1], changes)
    return f"nobody had asked for {changes}, or it was refused, or it was a dry run"


def _as_allowed(evidence: Evidence, asked: Asked, changes: dict[str, int]) -> str | None:
    """An upgrade only raises, a downgrade only lowers."""
    for feature, level in sorted(changes.items()):
        is_lower = level < evidence.finalized.level_of(feature)
        if is_lower == (asked.kind == "upgrade"):
            return f"an {asked.kind} takes {feature} to {level}"
    return None


def _requirements_hold(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Committed) or not (changes := evidence.changes_of(one)):
        return None
    levels = {**evidence.finalized.levels, **changes}
    for feature, level in sorted(levels.items()):
        unmet = evidence.realm.table.unmet(feature, level, levels) if level else None
        if unmet is not None:
            return f"{feature} is finalized at {level} without {unmet}"
    return None


def _brokers_can(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Committed):
        return None
    for feature, level in sorted(evidence.changes_of(one).items()):
        for broker in sorted(evidence.registered):
            if not evidence.supports(broker, feature, level):
                return f"{feature} is finalized at {level}, and {broker} does not support that"
    return None


def _majority_can(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Asked) or one.error != "NONE":
        return None
    for feature, level in sorted(one.levels.items()):
        able = [
            voter
            for voter, ranges in sorted(one.voters.items())
            if level == 0 or (feature in ranges and level in ranges[feature])
        ]
        if len(able) <= len(evidence.voters) // 2:
            said = ", ".join(able) or "none"
            return f"{feature}={level} is accepted with {said} of {len(evidence.voters)} voters"
    return None


def _safe_is_lossless(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Committed) or not (changes := evidence.changes_of(one)):
        return None
    level = changes.get(evidence.realm.governing)
    if level is None:
        return None
    content = dict(evidence.content)
    lost = evidence.dropped_at(level, content)
    causes = [row for row in evidence.accepted if evidence.expected_changes(row) == changes]
    if not lost or not causes:
        return None
    if causes[-1].kind != "unsafe_downgrade":
        return f"a {causes[-1].kind} to {level} loses {', '.join(sorted(lost))}"
    if not causes[-1].loses:
        return f"the operator was not told of losses at {level}: {', '.join(sorted(lost))}"
    return None


def _rewritten_at_the_level(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Rewritten):
        return None
    epoch = one.finalized.epoch
    said = {str(dropped) for dropped in one.dropped}
    expected = evidence.dropped_by_epoch.get(epoch, frozenset())
    if said != expected:
        return f"{one.node} says that {sorted(said)} was dropped, it was {sorted(expected)}"
    if one.entries != evidence.content_by_epoch.get(epoch):
        return f"{one.node} wrote other content at epoch {epoch} than the log has"
    return None


def _snapshot_first(evidence: Evidence, one: Happening) -> str | None:
    """Started or loaded, or: a snapshot of before, all of it again, and only then in use."""
    if not isinstance(one, Published):
        return None
    steps = evidence.steps.get(one.node, [])
    if steps and isinstance(steps[0], Started | Loaded):
        return None
    before = evidence.published.get(one.node)
    match steps:
        case [SnapshotWritten() as old, Rewritten() as new]:
            offset = evidence.offset_by_epoch.get(one.finalized.epoch)
            is_right = old.finalized == before and new.finalized == one.finalized
            if is_right and old.end_offset == offset:
                return None
    kinds = [type(step).__name__ for step in steps]
    return f"{one.node} uses epoch {one.finalized.epoch} after {kinds or 'nothing'}"


def _only_finalized(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Published):
        return None
    levels = evidence.history.get(one.finalized.epoch)
    if levels != one.finalized.levels:
        return f"{one.node} goes by {dict(one.finalized.levels)}, which is not finalized"
    before = evidence.published.get(one.node)
    if before is not None and before.epoch > one.finalized.epoch:
        return f"{one.node} goes back from epoch {before.epoch} to {one.finalized.epoch}"
    return None


def _only_supported(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Published) or not evidence.looks_at_levels(one.node):
        return None
    for feature, level in sorted(one.finalized.levels.items()):
        if not evidence.supports(one.node, feature, level):
            return f"{one.node} goes by {feature}={level}, which it does not support"
    return None


def _kept_out(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Registered | Unfenced) or one.node not in evidence.up:
        return None
    if not evidence.looks_at_levels(one.node):
        return None
    for feature, level in sorted(evidence.finalized.levels.items()):
        if not evidence.supports(one.node, feature, level):
            return f"{one.node} is let in, which does not support {feature}={level}"
    return None


_REACTIONS: Final = {"b": ("unregister and terminate",), "c": ("terminate", "resign and terminate")}


def _who_cannot_leaves(evidence: Evidence, one: Happening) -> str | None:
    if isinstance(one, Left):
        expected = _REACTIONS[one.node[0]]
        if isinstance(evidence.last.get(one.node), Elected):
            expected = ("resign and terminate",)
        return None if one.reaction in expected else f"{one.node} is to {one.reaction}"
    node = getattr(one, "node", "")
    if isinstance(evidence.last.get(node), Left) and isinstance(one, Published | Spoke | Elected):
        return f"{node} goes on after a level that it does not support"
    return None


def _floors_hold(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Committed):
        return None
    for feature, level in sorted(evidence.floors_of(one).items()):
        if level <= evidence.floors.get(feature, 0):
            return f"the minimum of {feature} falls from {evidence.floors[feature]} to {level}"
        for node in sorted(evidence.registered | (set(evidence.voters) & evidence.up)):
            found = evidence.started[node].ranges.get(feature)
            if found is None or found.min < level:
                return f"the minimum of {feature} rises to {level}, and {node} supports less"
    for feature, level in sorted(evidence.changes_of(one).items()):
        if 0 < level < evidence.floors.get(feature, 0):
            return f"{feature}={level} is below its minimum {evidence.floors[feature]}"
    return None


def _readable(evidence: Evidence, one: Happening) -> str | None:
    """Nobody is sent what its program cannot read, whoever learns of a level first."""
    if isinstance(one, Started):
        high = [n for n, level in sorted(evidence.said_to_all.items()) if level > one.reads]
        return f"{high[0]} speaks above what {one.node} reads" if high else None
    if not isinstance(one, Spoke):
        return None
    if not one.peer and one.level < 1:
        return f"{one.node} has no level to speak at"
    peers = [one.peer] if one.peer else sorted(evidence.up)
    for peer in peers:
        if peer in evidence.up and one.level > evidence.started[peer].reads:
            return f"{one.node} speaks {one.level} to {peer}, which reads less"
    return None


def _acknowledged(evidence: Evidence, one: Happening) -> str | None:
    if not isinstance(one, Acknowledged):
        return None
    asked = evidence.asked[one.request]
    if asked.dry or asked.error != "NONE":
        return f"request {one.request} was not to be done, and is acknowledged"
    if one.epoch != asked.epoch + 1:
        return f"request {one.request} took the epoch from {asked.epoch} to {one.epoch}"
    levels = evidence.history.get(one.epoch, {})
    if any(levels.get(name, 0) != level for name, level in asked.levels.items()):
        return f"request {one.request} is acknowledged and not committed"
    return None


def _group_goes_on(evidence: Evidence, one: Happening) -> str | None:
    if isinstance(one, Adopted):
        before = evidence.adopted.get(one.member)
        if before is not None and one.finalized.epoch < before.epoch:
            return f"{one.member} goes back from epoch {before.epoch} to {one.finalized.epoch}"
        if evidence.history.get(one.finalized.epoch) != one.finalized.levels:
            return f"{one.member} goes by levels that are not finalized"
    if isinstance(one, Rebalanced):
        newest = max((levels.epoch for levels in evidence.adopted.values()), default=-1)
        if one.finalized.epoch < newest:
            return f"the group is told epoch {one.finalized.epoch} when a member has {newest}"
    return None


def _one_rebalance(evidence: Evidence, one: Happening) -> str | None:
    if isinstance(one, Rebalanced) and one.cause == "levels":
        leader = evidence.adopted.get(one.leader)
        if leader is not None and one.finalized.epoch <= evidence.told:
            return f"a second rebalance tells of epoch {one.finalized.epoch}"
    return None


def _acknowledged_stays(evidence: Evidence, one: Happening) -> str | None:
    if isinstance(one, Rested) and one.finalized != evidence.finalized:
        return f"at rest at epoch {one.finalized.epoch}, committed was {evidence.finalized.epoch}"
    return None


def _comes_to_rest(_evidence: Evidence, one: Happening) -> str | None:
    if isinstance(one, Restless):
        return f"not at rest after {one.waited_ms} ms: {one.why}"
    return None


KRAFT_RULES: Final = tuple(
    KraftRule(name=name, promise=promise, check=check)
    for name, promise, check in (
        ("one log", "no two nodes hold another batch as committed", _one_log),
        (
            "only what was asked",
            "a level changes by an accepted request or the format, never by a refusal or a dry run",
            _only_what_was_asked,
        ),
        ("every live broker can", "a level is finalized only if all support it", _brokers_can),
        ("requirements hold", "no feature without what it requires", _requirements_hold),
        ("a majority can", "and so does a majority of the quorum", _majority_can),
        (
            "safe is lossless",
            "only an unsafe downgrade loses anything, and the operator is told",
            _safe_is_lossless,
        ),
        (
            "rewritten at the level",
            "what a node writes again is what the level knows, and it says what was dropped",
            _rewritten_at_the_level,
        ),
        (
            "snapshot first",
            "a snapshot right before the change, the state again, and only then in use",
            _snapshot_first,
        ),
        ("only finalized", "no node goes by a level that is not committed", _only_finalized),
        ("only supported", "no node goes by a level that it lacks", _only_supported),
        ("kept out", "no broker is let in that lacks a finalized level", _kept_out),
        (
            "who cannot leaves",
            "who reads a level that it lacks ends: unregistered, resigned",
            _who_cannot_leaves,
        ),
        (
            "minimums hold",
            "a deprecated minimum rises when all nodes have it, never falls, and is kept",
            _floors_hold,
        ),
        ("readable", "nobody is sent what its program cannot read", _readable),
        (
            "acknowledged is committed",
            "an acknowledged request is in the log, one step of the epoch",
            _acknowledged,
        ),
        (
            "the group goes on",
            "no member goes by what is not finalized, and none goes back for a stale broker",
            _group_goes_on,
        ),
        ("one rebalance", "the group rebalances once for a change of levels", _one_rebalance),
        ("acknowledged stays", "at rest the cluster is at what was committed", _acknowledged_stays),
        ("comes to rest", "every step ends with all nodes at the same levels", _comes_to_rest),
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
