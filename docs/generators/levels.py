"""docs/levels.md: features and their levels, what releases support, the rules about them."""

import re
import textwrap
from collections.abc import Callable, Iterable
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
from system_tests.cluster.machines.content import KAFKA_CONTENT
from system_tests.cluster.machines.roles import ROLE_RULES

_TOP = """# Feature levels: all features, all rules

To see the levels of a cluster and of its brokers:

<!-- not run: a real cluster -->
```sh
assignor features describe --bootstrap-server HOST:PORT
```

[features](features.md) explains how to change levels. This page lists every feature with its
levels, the ranges of each release, and the rules. In every table of rules, the first row that
applies decides; braces stand for values.

A *supported range* is what one program can do. A *finalized level* is what all nodes have agreed to
use. Its *epoch* grows by one with every applied request, whatever the number of features in the
request. A level is *compatible back* if a program below it loses nothing. A downgrade is lossless
if every level that it removes is compatible back; only an unsafe downgrade goes further.

`python -m docs.generate` writes this page from the tables in `probing/features`."""

_KAFKA = """## Kafka's features

Numbers, names and compatibility are those of Kafka's released classes; `metadata.version` belongs
to KIP-778. A level that is not compatible back *changed the metadata*, in Kafka's words. Kafka
lowers `metadata.version` only to levels above the highest of these, and does no unsafe downgrade
of it (KAFKA-13896)."""

_RELEASES = """### Supported ranges of each series

Brokers and controllers of 3.0 to 3.2 advertise no range: preview clusters, which count as level 1.
Every feature except `metadata.version` may be off. The last column has the levels that
`--release-version` sets for the highest `metadata.version` of the series."""

_CONTENT = """### Content of a metadata log, by level

The simulated cluster writes these entries. On an unsafe downgrade, the snapshot omits what the
lower level does not know, and reports it."""

_NATIVE = """## Native features

The levels of `assignment.protocol` are the versions of the protocol: the finalized level limits the
version that members write. All its levels are compatible back, because every rebalance writes all
subscriptions and assignments again."""

_UPDATES = """## Decision about an update

A request names several features. Either all of them are changed or none, or each one that can be
changed, as the request says. A dry run returns the same result and changes nothing. These rules
apply to the request as a whole:"""

_KIP = """These rules apply to each feature, by the texts of KIP-584 and KIP-778 (model `kip`:
native groups). KIP-584 demands that the active controller and every live broker support the level.
KIP-778 demands that a majority of the quorum does. A deprecated minimum is the lowest level that
all registered nodes and voters support; it never falls. `UNSAFE_FEATURE_DOWNGRADE` never got a
number in Kafka; on the wire it is 95, `INVALID_UPDATE_VERSION`."""

_SHIPPED = """Kafka's own controllers use these rules (model `kafka`), with one error for all of
them. From metadata.version 15 on, they ask every controller of the quorum instead of a majority;
before that, they ask none:"""

_JOIN = """## Which node may join

A node checks the levels on its disk when it starts; registration checks those of the log. A
rejected node stays fenced. A node that was down during an update is checked again before it is
unfenced."""

_ROLES = """## Reaction of a node to a level that it reads

A change has three steps: a snapshot of the state before it, the whole state written again at the
new level, and only then the use of the new level. After that, the node asks its peers again which
levels they accept (KIP-778)."""

_BOOTSTRAP = """## The first level of a log"""

_MIGRATION = """## From a static setting to a flag

KIP-584 has four phases to replace `inter.broker.protocol.version`: two rolling bounces once, and
none afterwards. To go back in an emergency, lower the setting below the migration version with one
bounce; the finalized levels stay unchanged and are ignored."""

_LOOK = """## Reaction of a group leader to levels of a broker

In KIP-584's story T0 to T5, one rebalance informs all members, and members carry the levels with
their epoch. The highest epoch wins: no member goes back because of a stale broker, but all follow
an operator's downgrade."""

_WORLD = """## Rules of the simulated cluster

`rolling-bounce simulate --world kraft` ([simulator](simulator.md)) checks these rules after every
event:"""


def render() -> str:
    """Return the whole page."""
    parts = [
        _TOP,
        _KAFKA,
        *(_feature(feature) for feature in KAFKA_FEATURES),
        _RELEASES + "\n\n" + _releases(),
        _CONTENT + "\n\n" + _content(),
        _NATIVE,
        *(_feature(feature) for feature in NATIVE_FEATURES),
        _UPDATES,
        _rules("error", REQUEST_RULES),
        _KIP,
        _rules("error", UPDATE_RULES[UpdateModel.KIP]),
        _SHIPPED,
        _rules("error", UPDATE_RULES[UpdateModel.KAFKA]),
        _JOIN,
        _rules("accepted", JOIN_RULES),
        _ROLES,
        _rules("reaction", ROLE_RULES),
        _BOOTSTRAP,
        _rules("written", BOOTSTRAP_RULES, lambda says: says.is_written),
        _MIGRATION,
        _rules("decides", MIGRATION_RULES, lambda phase: _DECIDES[phase.by_flag]),
        _LOOK,
        _rules("rebalance", LOOK_RULES, lambda says: says.starts_rebalance),
        _WORLD,
        _table(("rule", "promise"), [(rule.name, rule.promise) for rule in KRAFT_RULES]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = tuple(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _feature(feature: Feature) -> str:
    facts = [f"Governs {feature.governs}."]
    facts += ["Never off."] if feature.is_always_on else []
    facts += [] if feature.can_be_lowered else ["Cannot be lowered, not even with losses."]
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
    if feature.application:
        facts.append(
            "Every number is a level, compatible back. Its minimum is never raised, and"
            " `upgrade-all` and `downgrade-all` leave it as it is."
        )
        return f"### {feature.name}\n\n{textwrap.fill(' '.join(facts), 100)}"
    head = ("level", "name", "change", "compatible back", "requires")
    return f"### {feature.name}\n\n{' '.join(facts)}\n\n{_table(head, rows)}"


def _releases() -> str:
    rows = []
    for release in KAFKA_RELEASES:
        others = ", ".join(f"{name} 0..{top}" for name, top in sorted(release.others)) or "-"
        level = release.metadata[1]
        defaults = {n: at for n, at in default_levels(level).items() if n != METADATA_VERSION}
        levels = ", ".join(f"{name} {at}" for name, at in defaults.items()) or "-"
        span = f"{release.metadata[0]}..{level}"
        rows.append((release.series, span, others, levels))
    return _table(("series", METADATA_VERSION, "other features", "levels of the series"), rows)


def _content() -> str:
    rows = []
    for kind in KAFKA_CONTENT.kinds:
        later = ", ".join(f"{name} ({level})" for name, level in kind.later_fields.items())
        rows.append((kind.name, kind.since, later or "-"))
    return _table(("kind of entry", "since level", "fields that came later (level)"), rows)


_DECIDES = {False: "the setting", True: "the flag"}


def _rules(
    what: str, rules: Iterable[Any], shown: Callable[[Any], object] = lambda says: says
) -> str:
    rows = [
        (at, rule.name, _shown(shown(rule.says)), _braces(rule.why))
        for at, rule in enumerate(rules, start=1)
    ]
    return _table(("", "rule", what, "why"), rows)


def _shown(value: object) -> str:
    return {False: "no", True: "yes", "NONE": "-"}.get(value, str(value))


def _braces(why: str) -> str:
    return re.sub(r"\{([\w.]+)\}", lambda found: "{" + re.sub(r"[._]", " ", found[1]) + "}", why)
