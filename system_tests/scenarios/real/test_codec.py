"""Random values encoded by this project, decoded and encoded again by Kafka's classes."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encoding import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from probing import NEWEST_KAFKA, LeaderModel, find_release
from system_tests.support.jvm import RealCodec
from tests.encoding.golden_files import PATCHES
from tests.encoding.store_golden import proof
from tests.encoding.strategies import assignments, subscriptions
from tests.nightly import examples

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

_NIGHTLY = pytest.mark.nightly("a JVM, 10 s; golden vectors have all releases")
# Their encoders write their own latest version as the second number, whatever it was (KAFKA-8649).
_WRITES_ITS_OWN = LeaderModel.EMPTY_AND_OWN
_random_values = settings(
    max_examples=examples(450),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("1.1.1", marks=_NIGHTLY),
        pytest.param("2.0.1", marks=_NIGHTLY),
        "2.3.1",
        NEWEST_KAFKA,
    ],
)
def real(request):
    with RealCodec(request.param) as codec:
        yield codec, find_release(request.param)


def test_subscriptions_keep_their_meaning_in_the_real_class(real):
    codec, release = real

    @_random_values
    @given(subscriptions(st.sampled_from(release.known_versions)))
    def check(value):
        sent = encode_subscription(value)
        expected = decode_subscription(sent)
        if release.leader_model is _WRITES_ITS_OWN and value.version > 2:
            expected = replace(expected, latest_supported_version=release.latest_version)
        assert decode_subscription(codec.through("subscription", sent)) == expected

    check()


def test_assignments_keep_their_meaning_in_the_real_class(real):
    codec, release = real

    @_random_values
    @given(assignments(st.sampled_from(release.known_versions)))
    def check(value):
        sent = encode_assignment(value)
        expected = decode_assignment(sent)
        if release.leader_model is _WRITES_ITS_OWN and value.version > 2:
            expected = replace(expected, commonly_supported_version=release.latest_version)
        assert decode_assignment(codec.through("assignment", sent)) == expected

    check()


@pytest.mark.nightly("two JVMs each, 5 s; the digests are stored")
@pytest.mark.parametrize("release", PATCHES)
def test_patch_releases_do_what_the_stored_release_does(release):
    assert proof(release) == PATCHES[release]
