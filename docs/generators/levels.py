"""docs/levels.md: features and their levels, what releases support, the rules about them."""

import re
from collections.abc import Iterable
from typing import Any

from probing.features import (
    BOOTSTRAP_RULES,
    JOIN_RULES,
    KAFKA_FEATURES,
    KAFKA_RELEASES,
    LOOK_RULES,
    METADATA_VERSION,
    MIGRATION_RULES,
    NATIVE_FEATURES,
    REQUEST_RULES,
    UPDATE_RULES,
    Feature,
    UpdateModel,
    default_levels,
)
from system_tests.cluster import KRAFT_RULES
from system_tests.cluster.machines import KAFKA_CONTENT, ROLE_RULES

_TOP = """# Levels of features, and the rules about them

Printed by `python -m docs.generate` from the tables of `probing/features`. What an operator does
with levels is in [features](features.md). In every table of rules the first row that holds
decides; braces stand for numbers of the case at hand.

A *supported range* is what one program can do; a *finalized level* is what everybody has agreed
on, with an epoch that grows by one with every applied request, whatever the number of features in
it. A level is *compatible back* when a program below it loses nothing; a way down is lossless
when every level that it undoes is, and only an unsafe downgrade goes further."""

_KAFKA = """## Kafka's features

Numbers, names and ways back are those of the released classes; `metadata.version` is KIP-778's. A
level without a way back is one that, in Kafka's words, changed the metadata: Kafka itself lowers
`metadata.version` only above the highest of those, and does no unsafe downgrade of it
(KAFKA-13896)."""

_RELEASES = """### What each series supports

Brokers and controllers of 3.0 to 3.2 advertise nothing: preview clusters, which count as level 1.
Every feature but `metadata.version` may be off. The last column is what belongs to the series'
highest `metadata.version`, as `--release-version` sets it."""

_CONTENT = """### What a metadata log holds, and since when

What the simulated cluster writes, and what a lower level does not know: on an unsafe downgrade
the snapshot leaves it out, and says so."""

_OURS = """## Our features

`assignment.protocol` has the versions of the wire for levels: the finalized one caps what members
write. All its levels are compatible back, since every rebalance writes every blob anew."""

_UPDATES = """## Who decides about an update, and how

A request names several features; all are done or none, or each that can be, as it says; a dry run
says the same and does nothing. First the request as a whole:"""

_KIP = """Then each line, by the texts of KIP-584 and KIP-778 (model `kip`: ours). That the active
controller and every live broker support the level is KIP-584's; that a majority of the quorum
does is KIP-778's; a deprecated minimum is the lowest level that all registered nodes and voters
support, it never falls. `UNSAFE_FEATURE_DOWNGRADE` never got a number in Kafka; on the wire it is
95, `INVALID_UPDATE_VERSION`."""

_SHIPPED = """And as Kafka's own controllers do it (model `kafka`), with one error for everything;
from metadata.version 15 on they ask every controller of the quorum, not a majority, and before
that none:"""

_JOIN = """## Who may come in

At start-up against the levels on disk, and at registration against those of the log. Who is
rejected stays fenced; a node that slept through an update is asked again before it is unfenced."""

_ROLES = """## What a node does about a level that it reads

A change is done in three steps: a snapshot of all before it, the whole state written again at the
new level, and only then it is used, and peers are asked anew what they take (KIP-778)."""

_BOOTSTRAP = """## The first level of a log"""

_MIGRATION = """## From a static setting to a flag

KIP-584's four phases away from `inter.broker.protocol.version`: two rolling bounces once, and
none after. Lowering the setting below the migration version, one bounce, is the emergency way
back; the finalized levels stay where they are, and are not looked at."""

_LOOK = """## What the leader of a group does about levels that a broker tells

KIP-584's story T0 to T5: one rebalance tells all members, who carry the levels with their epoch;
the highest epoch wins, so nobody goes back for a broker that is behind, and an operator's step
down is followed."""

_WORLD = """## What is checked in the simulated cluster

`rolling-bounce simulate --world kraft` ([simulator](simulator.md)) checks at every happening:"""


def render() -> str:
    """The whole page."""
    parts = [
        _TOP,
        _KAFKA,
        *(_feature(feature) for feature in KAFKA_FEATURES),
        _RELEASES + "\n\n" + _releases(),
        _CONTENT + "\n\n" + _content(),
        _OURS,
        *(_feature(feature) for feature in NATIVE_FEATURES),
        _UPDATES,
        _rules(REQUEST_RULES, "error"),
        _KIP,
        _rules(UPDATE_RULES[UpdateModel.KIP], "error"),
        _SHIPPED,
        _rules(UPDATE_RULES[UpdateModel.KAFKA], "error"),
        _JOIN,
        _rules(JOIN_RULES, "is_accepted"),
        _ROLES,
        _rules(ROLE_RULES, "reaction"),
        _BOOTSTRAP,
        _rules(BOOTSTRAP_RULES, "is_written"),
        _MIGRATION,
        _rules(MIGRATION_RULES, "by_flag"),
        _LOOK,
        _rules(LOOK_RULES, "starts_rebalance"),
        _WORLD,
        _table(("rule", "promise"), [(rule.name, rule.promise) for rule in KRAFT_RULES]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = tuple(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _feature(feature: Feature) -> str:
    facts = [f"Decides {feature.governs}."]
    facts += ["Never off."] if feature.is_always_on else []
    facts += [] if feature.has_way_back else ["Never lowered, not even with losses."]
    rows = [
        (
            level.number,
            level.name,
            level.changed,
            "yes" if level.compatible_back else "no",
            ", ".join(f"{name} {least}" for name, least in level.requires) or "-",
        )
        for level in feature.levels
    ]
    head = ("level", "name", "what it changed", "compatible back", "requires")
    return f"### {feature.name}\n\n{' '.join(facts)}\n\n{_table(head, rows)}"


def _releases() -> str:
    rows = []
    for release in KAFKA_RELEASES:
        others = ", ".join(f"{name} 0..{top}" for name, top in sorted(release.others)) or "-"
        level = release.metadata[1]
        defaults = {n: at for n, at in default_levels(level).items() if n != METADATA_VERSION}
        said = ", ".join(f"{name} {at}" for name, at in defaults.items()) or "-"
        span = f"{release.metadata[0]}..{level}"
        rows.append((release.series, span, others, said))
    return _table(("series", METADATA_VERSION, "other features", "levels of the series"), rows)


def _content() -> str:
    rows = []
    for kind in KAFKA_CONTENT.kinds:
        later = ", ".join(f"{name} ({level})" for name, level in kind.later_fields.items())
        rows.append((kind.name, kind.since, later or "-"))
    return _table(("kind of entry", "since level", "fields that came later (level)"), rows)


_WHAT = {
    "error": "error",
    "is_accepted": "comes in",
    "reaction": "does",
    "is_written": "is written",
    "by_flag": "decides",
    "starts_rebalance": "rebalance",
}


def _rules(rules: Iterable[Any], attribute: str) -> str:
    rows = [
        (at, rule.name, _said(getattr(rule, attribute), attribute), _braces(rule.why))
        for at, rule in enumerate(rules, start=1)
    ]
    return _table(("", "rule", _WHAT[attribute], "says"), rows)


def _said(value: object, attribute: str) -> str:
    if attribute == "by_flag":
        return "the flag" if value else "the setting"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value == "NONE" else str(value)


def _braces(why: str) -> str:
    return re.sub(r"\{([\w.]+)\}", lambda found: "{" + re.sub(r"[._]", " ", found[1]) + "}", why)
