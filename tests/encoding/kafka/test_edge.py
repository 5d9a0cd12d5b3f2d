"""Unusual input is handled as in Kafka Streams; every deliberate difference has a name here."""

import pytest

from encoding import (
    DecodeError,
    EncodeError,
    FutureSubscription,
    decode_assignment,
    decode_subscription,
)
from tests.encoding.golden_files import DECODE, ENCODE, FROM_FIELDS, LATEST, TO_FIELDS, lines
from tests.versions import LATER, NEWEST

IN_BOTH_LISTS = "a task in both lists has one meaning here (unknown offsets), not two"
NEGATIVE_HOSTS = "a negative number of hosts is an error, as since 4.3"
NO_SUCH_TOPIC = "a topic number that the dictionary lacks is an error, not a null topic"
NULL_TAGS = "null tags are refused in every version"

# Input that 3.9.1 accepts and this codec rejects or decodes differently.
DIFFERENCES = {
    "e-145": IN_BOTH_LISTS,
    "e-147": IN_BOTH_LISTS,
    "e-283": NEGATIVE_HOSTS,
    "e-285": NEGATIVE_HOSTS,
    "e-295": NEGATIVE_HOSTS,
    "e-297": NEGATIVE_HOSTS,
    "e-327": NO_SUCH_TOPIC,
    "e-191": NULL_TAGS,
}


def edges(*ops):
    return [line for line in lines("edge") if line["op"] in ops]


def outcome_of(line, release):
    return next(result for result in line["results"] if release in result["releases"])


def read(line, known_versions):
    """Canonical fields, or None for a DecodeError; two numbers for a future version."""
    decode, to_fields = DECODE[line["kind"]], TO_FIELDS[line["kind"]]
    try:
        return to_fields(decode(bytes.fromhex(line["hex"]), known_versions))
    except DecodeError:
        return None


def agrees(fields, outcome):
    """Kafka decodes a future subscription to empty fields; here it has only its two versions."""
    kafka = outcome.get("fields")
    if fields is None or kafka is None:
        return fields is None and kafka is None
    return all(kafka[name] == value for name, value in fields.items())


def test_every_odd_blob_is_read_or_refused_as_3_9_1_does():
    found = edges("decode", "probing_response")
    known = range(1, 12)
    wrong = {e["id"] for e in found if not agrees(read(e, known), outcome_of(e, "3.9.1"))}
    assert wrong == {id_ for id_, why in DIFFERENCES.items() if why != NULL_TAGS}
    assert len(found) == 361


@pytest.mark.parametrize("release", [r for r in LATEST if r >= "2.5"])
def test_a_reader_that_knows_fewer_versions_decides_as_that_release(release):
    wrong = {
        line["id"]
        for line in edges("decode", "probing_response")
        if not agrees(read(line, range(1, LATEST[release] + 1)), outcome_of(line, release))
    }
    assert {id_ for id_ in wrong if id_ not in DIFFERENCES} == set()


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.3.1", "2.4.1"])
def test_releases_2_0_to_2_4_accept_numbers_that_contradict_each_other(release):
    wrong = [
        line
        for line in edges("decode")
        if line["kind"] == "subscription"
        and not agrees(read(line, range(1, LATEST[release] + 1)), outcome_of(line, release))
    ]
    known = range(1, LATEST[release] + 1)
    for line in wrong:
        data = bytes.fromhex(line["hex"])
        used = int.from_bytes(data[:4], "big", signed=True)
        supported = int.from_bytes(data[4:8], "big", signed=True)
        hand_written = "count -" in line["case"] or "in previous and standby" in line["case"]
        contradicts = used < 1 or (used >= 3 and supported < used)
        assert contradicts or hand_written, (release, line["id"], line["case"])
        if contradicts and used > LATEST[release]:
            assert read(line, known) is None


@pytest.mark.parametrize("release", ["0.10.0.1", "0.10.1.1", "0.10.2.2", "1.1.1"])
def test_releases_before_2_0_refuse_every_future_subscription(release):
    future = [
        line
        for line in edges("decode")
        if line["kind"] == "subscription"
        and int.from_bytes(bytes.fromhex(line["hex"])[:4], "big", signed=True) > LATEST[release]
    ]
    assert future
    assert all("fields" not in outcome_of(line, release) for line in future)


def test_truncation_at_every_byte_is_a_decode_error():
    checked = 0
    for line in edges("truncate"):
        data = bytes.fromhex(line["hex"])
        covered = [0] * len(data)
        for first, last, _ in outcome_of(line, "3.9.1")["prefix_lengths"]:
            covered[first : last + 1] = [1] * (last + 1 - first)
        assert all(covered)
        DECODE[line["kind"]](data)
        for length in range(len(data)):
            with pytest.raises(DecodeError) as caught:
                DECODE[line["kind"]](data[:length])
            assert caught.value.available == length
            assert caught.value.offset <= length
            checked += 1
    assert checked == 1800


def test_every_odd_value_is_written_or_refused_as_3_9_1_does():
    wrong, compared = set(), 0
    for line in edges("encode"):
        if "fields" not in line:
            continue
        number = "latest_supported" if line["kind"] == "subscription" else "commonly_supported"
        numbers = {"version": line["version"], number: line["latest_supported"]}
        if LATEST["3.9.1"] < line["version"] <= NEWEST:
            continue  # 3.9.1 refuses a version that later releases brought
        try:
            value = FROM_FIELDS[line["kind"]](line["fields"] | numbers)
            data = ENCODE[line["kind"]](value).hex()
        except EncodeError:
            data = None
        if data != outcome_of(line, "3.9.1").get("hex"):
            wrong.add(line["id"])
        compared += 1
    assert wrong == {id_ for id_, why in DIFFERENCES.items() if why == NULL_TAGS}
    assert compared > 40


def test_a_future_subscription_keeps_its_two_numbers_and_needs_them_to_fit():
    future = f"{LATER:08x}"
    read = decode_subscription(bytes.fromhex(f"{future}{LATER + 1:08x}beef"))
    assert read == FutureSubscription(LATER, LATER + 1)
    for numbers in (f"{future}{NEWEST:08x}", f"{future}ffffffff", future, f"{future}000000"):
        with pytest.raises(DecodeError):
            decode_subscription(bytes.fromhex(numbers))


def test_a_future_assignment_is_an_error_that_names_its_version():
    unknown = f"version {LATER}, which this reader does not know"
    with pytest.raises(DecodeError, match=unknown) as caught:
        decode_assignment(bytes.fromhex(2 * f"{LATER:08x}"))
    assert (caught.value.version, caught.value.available) == (LATER, 8)
