"""The codec agrees with an independent second codec on random values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import (
    assignment_to_fields,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscription_to_fields,
)
from tests.encoding import legacy_codec
from tests.encoding.golden_files import LATEST, vectors
from tests.encoding.strategies import assignments, subscriptions

legacy_versions = st.sampled_from(legacy_codec.VERSIONS)


@given(subscriptions(legacy_versions))
def test_both_codecs_write_the_same_subscription(value):
    data = legacy_codec.write_subscription(subscription_to_fields(value))
    assert encode_subscription(value) == data
    assert decode_subscription(data) == value


@given(assignments(legacy_versions))
def test_both_codecs_write_the_same_assignment(value):
    data = legacy_codec.write_assignment(assignment_to_fields(value))
    assert encode_assignment(value) == data
    assert decode_assignment(data) == value


@given(subscriptions(legacy_versions))
def test_both_codecs_read_the_same_subscription(value):
    data = encode_subscription(value)
    assert legacy_codec.read_subscription(data) == subscription_to_fields(value)


@given(assignments(legacy_versions))
def test_both_codecs_read_the_same_assignment(value):
    data = encode_assignment(value)
    assert legacy_codec.read_assignment(data) == assignment_to_fields(value)


@pytest.mark.parametrize("version", legacy_codec.VERSIONS)
def test_the_oracle_itself_writes_what_kafka_wrote(version):
    """The second codec must be independent of the first."""
    checked = 0
    for release, latest in LATEST.items():
        for kind in ("subscription", "assignment") if version <= latest else ():
            write = getattr(legacy_codec, f"write_{kind}")
            for line in vectors(kind)[release, version]:
                if line["wire_sorted"]:
                    data = write(line["fields"])
                    assert line["hex"].startswith(data.hex()), line["id"]
                    checked += 1
    assert checked > 20
