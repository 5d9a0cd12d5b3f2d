"""Findings of fuzzing, each as its shortest bytes. The inputs are in the corpus, too."""

import pytest

from encoding import (
    DecodeError,
    FutureSubscription,
    decode_assignment,
    decode_subscription,
    explain,
)

EVERY = (*range(1, 12), 101, 102, 103)


def blob(version, body):
    return version.to_bytes(4, "big") * 2 + body


@pytest.mark.parametrize("since", [b"\xc3", b"\xff", b"\xcf" + b"\xff" * 8, b"\xa1x"])
@pytest.mark.parametrize("version", [101, 102, 103, 104])
def test_a_readable_since_that_is_no_count_is_refused_by_every_reader(version, since):
    # The decoder checked key 0 of later versions only, the explainer key 0 of all versions.
    data = blob(version, b"\x81\x00" + since)
    for decode in (decode_subscription, decode_assignment):
        with pytest.raises(DecodeError, match=r"key 0 \(readable_since, count\)"):
            decode(data, EVERY)


def test_a_readable_since_of_nil_is_the_used_version():
    data = blob(102, b"\x81\x00\xc0")
    assert decode_subscription(data) == FutureSubscription(102, 102)
    assert decode_subscription(data, EVERY).version == 102
    assert sum(piece.size for piece in explain("subscription", data, EVERY)) == len(data)


def test_sizes_that_only_later_readers_understand_are_explained_as_not_read():
    # The explainer read the task numbering of bodies that the decoder does not read.
    data = blob(104, b"\x81\x07\xc4\x01\x80")
    assert decode_subscription(data) == FutureSubscription(104, 104)
    pieces = list(explain("subscription", data))
    assert sum(piece.size for piece in pieces) == len(data)
    assert pieces[-1].meaning.startswith("not read: ")
    with pytest.raises(DecodeError, match="sizes"):
        list(explain("subscription", blob(101, data[8:])))


def test_a_list_in_place_of_a_value_that_is_not_read_is_explained():
    # The look-up of a value's name assumed hashable values: TypeError.
    data = blob(104, b"\x81\x0f\x90")
    assert decode_subscription(data) == FutureSubscription(104, 104)
    assert list(explain("subscription", data))[-1].value == []


@pytest.mark.parametrize("version", [12, 99, 101, 200])
def test_a_blob_cut_behind_its_version_is_refused_in_that_version(version):
    # The reader of the second number did not know the version yet: "unknown version".
    for decode in (decode_subscription, decode_assignment):
        with pytest.raises(DecodeError, match=f"version {version}") as caught:
            decode(version.to_bytes(4, "big") + b"\0\0")
        assert (caught.value.version, caught.value.available) == (version, 6)
