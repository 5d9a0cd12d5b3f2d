"""What a new release of Kafka, or a new version, still lacks: the steps of docs/extending.md.

`python -m tests.probing.releases.guide` prints each open step, a line each, with `--json` as an
object, and exits with 1 if there is one. `test_guide.py` fails for each, and `test_walk.py` walks
them in a copy of the sources with an invented release.
"""

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

from encoding import KAFKA_VERSIONS, Subscription
from encoding.kafka.subscription import AS_READ
from probing import NEWEST_KAFKA, RELEASES, find_release
from probing.features import KAFKA_RELEASES
from probing.releases import parse_order
from probing.releases.rows import LATEST_VERSION_SINCE, READ, RELEASE_TABLES, TRUNK
from probing.versions import START_VERSION
from system_tests.matrix import all_pairs, kip268_pairs, read_verdicts
from system_tests.plan.changes import (
    ANNOUNCED,
    CHANGES,
    NEW,
    STREAMS_BROKERS,
    STREAMS_CHANGES,
)
from system_tests.real import PINS
from system_tests.support.fetch import CURRENT
from tests.encoding.golden_files import LATEST, PATCHES, expected_count, groups, lines, vectors
from tests.encoding.kafka.lock_layouts import locked
from tests.system_tests.explore.table import STORED, all_ways

ROOT = Path(__file__).resolve().parents[3]
VERDICTS = ROOT / "tests/system_tests/matrix/upgrades.json"
NEWEST = find_release(NEWEST_KAFKA)
SERIES = list(dict.fromkeys(release.series for release in RELEASES if not release.is_native))
PAGES = ("Streams guide", "upgrade notes")  # of Kafka, which have a section for each series
WRITTEN = [version for _, version, _ in LATEST_VERSION_SINCE]


def upgrade_from():
    before = SERIES[SERIES.index(NEWEST.series) - 1]
    if before not in NEWEST.upgrade_from:
        return (
            f"[[upgrade_from]] in probing/releases/releases.toml: {NEWEST.name} accepts {before},"
            " if its StreamsConfig does"
        )
    return ""


def feature_levels():
    if KAFKA_RELEASES[-1].series != NEWEST.series:
        return (
            f"[[release]] {NEWEST.series} in probing/features/kafka_levels.toml, with the levels"
            " that it brought: from the classes MetadataVersion and Feature of its jar"
        )
    return ""


def streams_groups():
    if f"{NEWEST.series}.0" not in [row["since"] for row in STREAMS_BROKERS]:
        return (
            f"[[brokers]] {NEWEST.series}.0 in system_tests/plan/changes/changes.toml: what its"
            " brokers do with streams groups"
        )
    return ""


def problem_of_read(name, row):
    """What is wrong with the row of a release that was read, or ""."""
    rows = [pair for change in (*CHANGES, *STREAMS_CHANGES) for pair in change.ranges]
    changed = {name for pair in rows for name in pair} | {row.release for row in NEW}
    lacking = [page for page in PAGES if page not in row["source"]]
    if name.endswith(".0") and lacking:
        return f"[[read]] {name}: source names Kafka's {lacking[0]}, once it is read"
    if (name in changed) is row.get("nothing", False):
        return f"[[read]] {name}: nothing = true if no [[change]] has {name}, and only then"
    return ""


def changes():
    if lacking := [name for name in CURRENT if name not in READ]:
        return (
            f"[[read]] {lacking[0]} in probing/releases/releases.toml: what was read to find its"
            " changes (Kafka's upgrade notes and Streams guide, ConfigDef of its jars); each is"
            " a [[change]] in system_tests/plan/changes/changes.toml, and [[one_way_format]]"
            " what earlier releases cannot open; nothing = true if there is none"
        )
    if lacking := [row.release for row in ANNOUNCED if parse_order(row.release) <= NEWEST.order]:
        return (
            f"[[announced]] {lacking[0]} in system_tests/plan/changes/changes.toml: what came with"
            f" {NEWEST.name} is a [[change]], what did not is announced of a later release"
        )
    problems = (problem_of_read(name, row) for name, row in READ.items() if name != TRUNK)
    return next(filter(None, problems), "")


def versions():
    if list(KAFKA_VERSIONS) != WRITTEN:
        return (
            f"the codec knows {KAFKA_VERSIONS}, the releases write {tuple(WRITTEN)}: [[version]] in"
            " probing/releases/releases.toml, or KAFKA_VERSIONS and its rows in"
            " encoding/kafka/schema.py"
        )
    return ""


def start_version():
    starts = {row["version"]: row.get("native_start") for row in RELEASE_TABLES["version"]}
    if starts[WRITTEN[-1]] != START_VERSION:
        return (
            f"native_start of version {WRITTEN[-1]} in probing/releases/releases.toml: native"
            f" members start with {START_VERSION} (START_VERSION in probing/versions.py); a newer"
            " version costs each group under an older leader a rebalance for each start"
        )
    return ""


def attributes():
    known = {field.name for field in fields(Subscription)}
    lacking = [name for name in AS_READ if name not in known]
    if lacking:
        return f"an attribute of Subscription in encoding/kafka/values.py: {', '.join(lacking)}"
    return ""


def layouts():
    lacking = [version for version in KAFKA_VERSIONS if str(version) not in locked()]
    if lacking:
        return f"a lock entry of {lacking}: python -m tests.encoding.kafka.lock_layouts"
    return ""


def golden_vectors():
    series = {find_release(name).series for name in LATEST}
    if NEWEST.series not in series or max(LATEST.values()) < WRITTEN[-1]:
        return f"golden vectors: python -m tests.encoding.store_golden {NEWEST.name}"
    for kind, release, version in groups(KAFKA_VERSIONS):
        if len(vectors(kind)[release, version]) != expected_count(kind, release, version):
            return (
                f"golden vectors of version {version} of the {kind}: python -m"
                f" tests.encoding.store_golden {release}"
            )
    stored = [row for line in lines("edge") for row in line["results"]]
    if lacking := [name for name in LATEST if not any(name in row["releases"] for row in stored)]:
        return f"outcomes of odd inputs: python -m tests.encoding.store_golden {lacking[0]}"
    if lacking := sorted({*CURRENT} - {*LATEST, *PATCHES}):
        return f"python -m tests.encoding.store_golden --patch {lacking[0]}"
    return ""


def checksums():
    pinned = PINS.read_text(encoding="utf-8")
    lacking = [name for name in CURRENT if f"  kafka-streams-{name}.jar" not in pinned]
    if lacking:
        return (
            f"checksums of the jars of {', '.join(lacking)}: python -m system_tests.support.fetch,"
            " check what it reports, then the same with --pin"
        )
    return ""


def verdicts():
    if set(read_verdicts(VERDICTS)) != {*all_pairs(), *kip268_pairs()}:
        return f"rolling-bounce matrix --missing --write {VERDICTS.relative_to(ROOT)}"
    return ""


def findings():
    stored = json.loads(STORED.read_text(encoding="utf-8"))["same"][False]
    ways = {tuple(way.split(" -> ")) for same in stored for way in same}
    if ways != set(all_ways()):
        return f"{STORED.relative_to(ROOT)}: python -m tests.system_tests.explore.table"
    return ""


def changelog():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wire = "".join(re.findall(r"^### Wire\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    lacking = [
        name for name in CURRENT if not re.search(rf"(?<![\d.]){re.escape(name)}(?![\d.]*\d)", text)
    ]
    if lacking:
        return f"CHANGELOG.md names {', '.join(lacking)}"
    if not re.search(rf"\b{WRITTEN[-1]}\b", wire):
        return f"CHANGELOG.md names version {WRITTEN[-1]} under Wire, with the rollback"
    return ""


STEPS = (
    versions,
    start_version,
    attributes,
    layouts,
    upgrade_from,
    feature_levels,
    streams_groups,
    changes,
    golden_vectors,
    checksums,
    verdicts,
    findings,
    changelog,
)
"""In the order of the page; each returns what is to do, or "" if it is done."""


def main(arguments):
    missing = {step.__name__: step() for step in STEPS}
    missing = {name: sentence for name, sentence in missing.items() if sentence}
    lines = [f"{name}: {sentence}" for name, sentence in missing.items()]
    text = json.dumps(missing) if "--json" in arguments else "\n".join(lines)
    print(text or f"nothing of {NEWEST.name} is missing")  # noqa: T201
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
