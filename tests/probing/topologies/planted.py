"""Break one rule of `probing.topologies` at a time, and explore a change in every order.

Writes the findings into docs/planted.json, from which docs/planted.md is generated.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

from probing.topologies import (
    CHAIN_RULES,
    CLAIM_RULES,
    FORM_RULES,
    UNIT_RULES,
    chains,
    claim_rule,
    decide,
    families,
    joined_families,
    memory,
)
from tests.probing.topologies.model import Model

STORED: Final = Path(__file__).resolve().parents[3] / "docs" / "planted.json"


def without(rules, name):
    """The decision of a table without a row."""
    left = [rule for rule in rules if rule.name != name]
    assert len(left) < len(rules)
    return lambda numbers: next(rule for rule in left if rule.holds(numbers))


def changed(rules, name, **fields):
    """The decision of a table in which a row has another result."""
    other = [replace(rule, **fields) if rule.name == name else rule for rule in rules]
    assert other != list(rules)
    return lambda numbers: next(rule for rule in other if rule.holds(numbers))


@dataclass(frozen=True)
class RuleFault:
    """A fault of a rule: keyword arguments of the model, and the words for the page."""

    rule: str
    fault: str
    model: dict[str, Any] = field(default_factory=dict)
    change: str = "change"
    crashes: int = 1


def form(name, fault, **options):
    fields = {"choose": options.pop("choose", None) or without(FORM_RULES, name)}
    return RuleFault(name, fault, model={"forms": fields}, **options)


def unit(name, fault, **options):
    fields = {"choose": options.pop("choose", None) or without(UNIT_RULES, name)}
    return RuleFault(name, fault, model={"units": fields}, **options)


def chain(name, fault, **options):
    fields = {"choose_chain": options.pop("choose", None) or without(CHAIN_RULES, name)}
    return RuleFault(name, fault, model={"forms": fields}, **options)


def group(rule, fault, name, **options):
    return RuleFault(rule, fault, model={"faults": frozenset({name})}, **options)


NEVER, CARRIED = "a version that was never reached", "reached, and carried"
ORPHANED, STAYS = "orphaned", "stays with its member"
RUNS = "runs in the wanted version"
FAULTS: Final = (
    form(NEVER, "removed"),
    form(NEVER, "not remembered", choose=changed(FORM_RULES, NEVER, remembered=False)),
    form(CARRIED, "removed"),
    form(
        CARRIED,
        "wants the lowest version",
        choose=changed(FORM_RULES, CARRIED, wanted=lambda n: n.live[0]),
    ),
    form("reached, and carried by no member", "removed"),
    form(
        "reached, and carried by no member",
        "wants the highest version",
        choose=changed(FORM_RULES, "reached, and carried by no member", wanted=lambda n: n.newest),
    ),
    unit(
        "runs in the wanted form",
        "waits",
        choose=changed(UNIT_RULES, "runs in the wanted form", form="none"),
    ),
    unit("moved by balance", "waits", choose=changed(UNIT_RULES, "moved by balance", form="none")),
    unit(STAYS, "removed"),
    unit(STAYS, "starts in the wanted form", choose=changed(UNIT_RULES, STAYS, form="wanted")),
    unit(ORPHANED, "waits", choose=changed(UNIT_RULES, ORPHANED, form="none")),
    unit("waits", "removed"),
    RuleFault("the leader remembers it", "removed", model={"claims": "removed"}),
    RuleFault("the leader remembers it", "not believed", model={"claims": "not believed"}),
    chain(
        RUNS,
        "stays in the other version",
        choose=changed(CHAIN_RULES, RUNS, runs_wanted=False),
        change="join loses one",
    ),
    chain("run by no member", "removed", change="removed", crashes=2),
    chain("stays together", "removed", change="removed"),
    RuleFault(
        "families of a repartition topic that changes are a chain",
        "they change one by one",
        model={"chains": "none"},
        change="removed",
    ),
    RuleFault(
        "a topic that carries other records makes a chain",
        "it does not",
        model={"chains": "unread topics only"},
        change="moved",
    ),
    group("all old forms of a partition stay", "those of one member", "one_owner", change="merge"),
    group(
        "a chain runs on members of one version", "on any carrier", "any_carrier", change="renamed"
    ),
    group("tasks go to members that can run them", "to any member", "any_member"),
    group("a partition that moves is withheld", "given at once", "no_withholding"),
    group("subscriptions carry the memory", "they do not", "forgets"),
)
_CLAIMS: Final = {
    "removed": without(CLAIM_RULES, "the leader remembers it"),
    "not believed": changed(CLAIM_RULES, "the leader remembers it", believed=False),
}


def _one_by_one(members, topics):
    live = {form: topics[form] for member in members for form in member.forms}
    return [(family, False) for family in families(live)]


def found_by(fault: RuleFault) -> str:
    """The first broken rule of an exploration with the fault, in a few words; "" if there is none.

    Both programs lead first, one after the other.
    """
    options = dict(fault.model)
    claims = _CLAIMS.get(options.pop("claims", ""), claim_rule)
    chained = options.pop("chains", "")
    joined = _one_by_one if chained == "none" else joined_families
    reused = chains._reused_topics if chained != "unread topics only" else lambda *_: set()
    for leads in (1, 2):
        model = Model(fault.change, leads, crashes=fault.crashes, **options)
        try:
            with (
                mock.patch.object(memory, "claim_rule", claims),
                mock.patch.object(decide, "joined_families", joined),
                mock.patch.object(chains, "_reused_topics", reused),
            ):
                broken = model.explore().broken
        except (RuntimeError, IndexError):
            return "no row holds"
        if broken:
            return _words(broken[0].partition(": State")[0])
    return ""


_WORDS: Final = {
    "returned to": "a partition returns to the old form",
    "live members stopped": "a partition of a live member stops",
    "lost their last": "a live member loses its last partition",
    "which no member reads": "records reach no store",
    " reach ": "records reach another store",
    "which it cannot": "a member runs what it cannot",
    "more than one extra": "more than one extra rebalance",
    "ends with": "does not end in the new topology",
    " run": "a partition runs twice",
}


def _words(sentence: str) -> str:
    """A finding without the numbers of members and partitions."""
    return next(words for text, words in _WORDS.items() if text in sentence)


def main() -> None:
    """Explore all faults and write the findings."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    stored["explored"] = [
        {
            "rule": fault.rule,
            "fault": fault.fault,
            "change": fault.change,
            "crashes": fault.crashes,
            "found": found_by(fault),
        }
        for fault in FAULTS
    ]
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
