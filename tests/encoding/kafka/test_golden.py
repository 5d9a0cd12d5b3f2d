"""Every vector of 17 Kafka Streams releases, in both directions."""

import pytest

from encoding import KAFKA_VERSIONS
from tests.encoding.golden_files import (
    DECODE,
    EDGES,
    ENCODE,
    FROM_FIELDS,
    PATCHES,
    TO_FIELDS,
    expected_count,
    groups,
    lines,
    plain_rows,
    vectors,
)


def differences(kind, line):
    """The differences of a vector; empty if there is none."""
    data = bytes.fromhex(line["hex"])
    kafka = data[: len(data) - line.get("trailing_bytes", 0)]
    value = DECODE[kind](data)
    fields = TO_FIELDS[kind](value)
    again = ENCODE[kind](FROM_FIELDS[kind](line["fields"]))
    found = []
    if list(fields.items()) != list(line["fields"].items()):
        found.append(("decode", fields, line["fields"]))
    if line["wire_sorted"] and again != kafka:
        found.append(("encode", again.hex(), kafka.hex()))
    if len(again) != len(kafka):
        found.append(("length", len(again), len(kafka)))
    if DECODE[kind](again) != value:
        found.append(("decode what was encoded", again.hex()))
    if ENCODE[kind](value) != again:
        found.append(("encode what was decoded", ENCODE[kind](value).hex(), again.hex()))
    return found


def check(kind, release, version, record_property):
    stored = vectors(kind)[release, version]
    assert len(stored) == expected_count(kind, release, version)
    found = {line["id"]: differences(kind, line) for line in stored}
    assert {id_: what for id_, what in found.items() if what} == {}
    record_property("golden", (kind, release, version, len(stored)))


@pytest.mark.kip("268-1", "core")
@pytest.mark.parametrize(("kind", "release", "version"), groups((1, 2)))
def test_versions_1_and_2_agree_with_kafka_byte_for_byte(kind, release, version, record_property):
    check(kind, release, version, record_property)


@pytest.mark.kip("268-2", "core")
@pytest.mark.parametrize(("kind", "release", "version"), groups((3,)))
def test_version_3_carries_the_second_number_as_kafka_does(kind, release, version, record_property):
    check(kind, release, version, record_property)
    number = "latest_supported" if kind == "subscription" else "commonly_supported"
    for line in vectors(kind)[release, version]:
        assert bytes.fromhex(line["hex"])[4:8] == line["fields"][number].to_bytes(4, "big")


@pytest.mark.kip("268-3", "core")
@pytest.mark.parametrize(("kind", "release", "version"), groups(KAFKA_VERSIONS[3:]))
def test_versions_4_to_11_agree_with_kafka_byte_for_byte(kind, release, version, record_property):
    check(kind, release, version, record_property)


def test_no_vector_is_lost_and_none_is_left_over():
    for kind in ("subscription", "assignment"):
        wanted = {(release, version) for k, release, version in groups(KAFKA_VERSIONS) if k == kind}
        assert set(vectors(kind)) == wanted
    assert len(lines("edge")) == EDGES


def test_patch_releases_write_and_read_what_a_stored_release_does():
    """880 vectors and 383 edges each; `test_codec.py` asks the real classes again."""
    counts = {(row["vectors"], row["edges"]) for row in PATCHES.values()}
    assert counts == {(len(plain_rows()), 383)}
    same_as = {name: row["same_as"] for name, row in PATCHES.items()}
    digests = {(row["same_as"], row["sha256"]) for row in PATCHES.values()}
    assert len(digests) == len(set(same_as.values())), "one stored release, one digest"
    first = {"3.9.2": "3.9.1", "4.0.2": "3.9.1", "4.1.2": "3.9.1", "4.2.2": "4.3.1"}
    assert same_as == {**same_as, **first}


def test_most_vectors_prove_exact_bytes():
    for kind in ("subscription", "assignment"):
        exact = [line["wire_sorted"] for line in lines(kind)]
        assert sum(exact) > len(exact) // 3, (kind, sum(exact))
