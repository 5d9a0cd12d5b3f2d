"""Released layouts never change; for an incomplete new version, the tests say what is missing."""

import json
import re
from pathlib import Path

import pytest

from docs.generators import wire
from encoding import KAFKA_VERSIONS, KNOWN_VERSIONS, NATIVE_VERSIONS
from encoding.native.schema import EMULATED_VERSIONS, NATIVE_KINDS, READABLE_SINCE
from tests.encoding.golden_files import LATEST
from tests.encoding.kafka.lock_layouts import KINDS, is_appended, layout_of, locked
from tests.encoding.native_strategies import DRAWN, NATIVE_WRITTEN

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = json.loads((ROOT / "tests/encoding/golden/native.json").read_text(encoding="ascii"))


@pytest.mark.parametrize("version", sorted(locked(), key=int))
def test_the_layout_of_a_released_version_is_what_it_was(version):
    for kind in KINDS:
        new, old = layout_of(kind, int(version)), locked()[version][kind]
        assert is_appended(old, new, int(version)), (
            f"the {kind} of version {version} is released and must not change: members that run"
            " somewhere write it. Give the new layout a new version: end the old row with `until`,"
            " add a row with `since` (native rows under a new key), add the version to the table"
            " and run `python -m tests.encoding.kafka.lock_layouts`"
        )
        assert new == old, (
            f"the {kind} of version {version} has new keys, which older members skip: check that"
            " these can work without them, and run `python -m tests.encoding.kafka.lock_layouts`"
        )


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        (lambda rows: rows, True),
        (lambda rows: [*rows, "999 more: count = 0"], True),
        (lambda rows: rows[:-1], False),
        (lambda rows: [*rows, "1 more: count = 0"], False),
        (lambda rows: [rows[0], "0 more: count = 0", *rows[1:]], False),
        (lambda rows: [rows[0].replace("since ", "since 1"), *rows[1:]], False),
        (lambda rows: [*rows[:-1], rows[-1].replace(": ", ": other_")], False),
    ],
)
def test_only_new_keys_behind_the_others_fit_a_released_layout(change, fits):
    rows = locked()["101"]["subscription"]
    assert is_appended(rows, change(rows), 101) is fits
    kafkas = locked()["11"]["subscription"]
    assert not is_appended(kafkas, [*kafkas, "more: int32"], 11)


def missing_of(version):
    """The missing parts of a known version, in the order in which to add them."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wire_entries = "".join(
        re.findall(r"^### Wire\n(.*?)(?=^##|\Z)", changelog, re.MULTILINE | re.DOTALL)
    )
    golden = {(line["kind"], line["version"]) for line in GOLDEN}
    is_native = version not in KAFKA_VERSIONS
    steps = (
        (
            "a lock entry: run `python -m tests.encoding.kafka.lock_layouts`",
            str(version) in locked(),
        ),
        (
            "golden bytes: native ones in golden/native.json, Kafka's made by its release",
            {(kind, version) for kind in KINDS} <= golden
            if is_native
            else version in LATEST.values(),
        ),
        (
            "strategies: the version in native_strategies.NATIVE_WRITTEN, each type in DRAWN",
            not is_native or version in NATIVE_WRITTEN,
        ),
        ("READABLE_SINCE", not is_native or version in READABLE_SINCE),
        ("docs: `make docs` prints docs/wire.md", f" v{version} |" in wire.render()),
        (
            "a Wire entry in CHANGELOG.md that names it, with the rollback",
            not is_native or re.search(rf"\b{version}\b", wire_entries) is not None,
        ),
    )
    return [step for step, is_present in steps if not is_present]


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_a_known_version_is_complete(version):
    missing = missing_of(version)
    listed = "".join(f"\n- {step}" for step in missing)
    assert not missing, f"version {version} is known, but not complete; it lacks{listed}"


def test_a_version_that_is_only_emulated_lacks_a_release():
    for version in EMULATED_VERSIONS:
        missing = missing_of(version)
        assert missing[0].startswith("a lock entry")
        assert missing[1].startswith("golden bytes")


@pytest.mark.kip("268-17", "core")
def test_each_version_differs_from_the_one_before_by_a_field_added_dropped_and_changed():
    def rows(kind, version):
        lines = layout_of(kind, version)[2:]
        return {line.split(": ")[0].split(" ")[1]: line.split(" ", 1)[1] for line in lines}

    for kind in KINDS:
        first, following, last = (rows(kind, version) for version in (101, 102, 103))
        assert following.keys() - first.keys()
        assert first.keys() - following.keys()
        assert {n for n in first.keys() & following.keys() if first[n] != following[n]}
        assert {n for n in following.keys() & last.keys() if following[n] != last[n]}
    assert [READABLE_SINCE[version] for version in (101, 102, 103)] == [101, 101, 103]


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_never_used_again(kind):
    rows = NATIVE_KINDS[kind]
    assert [row.key for row in rows] == list(range(len(rows)))
    assert rows[0].name == "readable_since"
    for row in rows:
        assert row.meaning
        assert row.type in DRAWN
        assert row.since in (*NATIVE_VERSIONS, *EMULATED_VERSIONS)
        assert row.until is None or row.until >= row.since
    for version in NATIVE_WRITTEN:
        names = [row.name for row in rows if row.is_in(version)]
        assert len(set(names)) == len(names)


def test_the_lock_holds_what_the_vectors_of_real_releases_were_made_with():
    """Version 11 as in the golden files, independent of the schema."""
    names = [line.split(":")[0] for line in locked()["11"]["subscription"] if line[0] != " "]
    assert names == [
        "version",
        "latest_supported_version",
        "process_id",
        "user_endpoint",
        "task_offset_sums",
        "unique_field",
        "error_code",
        "client_tags",
    ]
