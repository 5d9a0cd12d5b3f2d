"""Text as Java writes and reads it; the bytes were measured with a JVM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding.primitives.java_text import (
    decode_java_utf,
    decode_utf8,
    decode_utf16,
    encode_java_utf,
    encode_utf8,
    encode_utf16,
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("ff", "�"),
        ("fffe", "��"),
        ("c3", "�"),
        ("e282", "�"),
        ("c080", "��"),
        ("eda080", "�"),
        ("eda0", "�"),
        ("eda041", "�A"),
        ("e080", "��"),
        ("f09f98", "�"),
        ("f8888080", "����"),
        ("61c362", "a�b"),
        ("610062", "a\0b"),
        ("f09f9880", "😀"),
        ("e282eda080", "��"),
    ],
)
def test_malformed_utf8_gets_one_replacement_per_part_as_java_counts_them(data, text):
    assert decode_utf8(bytes.fromhex(data)) == text


def test_half_a_pair_becomes_a_question_mark_and_two_halves_a_character():
    assert encode_utf8("a\ud800b") == b"a?b"
    assert encode_utf8("\ud83d\ude00\ud800") == "😀?".encode()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("abc", "616263"),
        ("\0", "c080"),
        ("h\0é😀", "68c080c3a9eda0bdedb880"),
        ("\ud800", "eda080"),
        ("\ud83d\ude00", "eda0bdedb880"),
        ("￿", "efbfbf"),
        ("", ""),
    ],
)
def test_modified_utf8_is_written_as_java_writes_it(text, data):
    assert encode_java_utf(text).hex() == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("610062", "a\0b"),
        ("c181", "A"),
        ("e08080", "\0"),
        ("eda080", "\ud800"),
        ("eda0bdedb880", "😀"),
        ("e28080", "\u2000"),
    ],
)
def test_unusual_modified_utf8_passes_as_in_java(data, text):
    assert decode_java_utf(bytes.fromhex(data)) == text


@pytest.mark.parametrize("data", ["ff", "80", "c3", "e282", "f09f9880", "c328", "e28228", "e22880"])
def test_malformed_modified_utf8_is_refused(data):
    assert decode_java_utf(bytes.fromhex(data)) is None


@given(st.text(st.characters()))
def test_every_text_survives_modified_utf8_and_utf16(text):
    # Two halves side by side are one character from then on.
    joined = decode_utf16(encode_utf16(text))
    assert decode_java_utf(encode_java_utf(text)) == joined
    assert decode_utf16(encode_utf16(joined)) == joined


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_without_halves_survives_utf8(text):
    assert decode_utf8(encode_utf8(text)) == text


@given(st.binary())
def test_utf8_never_fails_to_decode(data):
    assert len(decode_utf8(data)) <= len(data)
