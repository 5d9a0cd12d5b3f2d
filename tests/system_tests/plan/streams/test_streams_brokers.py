"""What brokers of each release do with streams groups, stated a second time beside its data."""

import pytest

from probing import RELEASES
from system_tests.plan.streams.brokers import (
    FIRST_BROKERS,
    FIRST_STATIC,
    broker_row,
    reports_offsets,
)

KAFKA = [release for release in RELEASES if not release.is_native]


def names_with(has):
    """The first and the last release of Kafka with a property, all of those between have it."""
    found = [position for position, release in enumerate(KAFKA) if has(release)]
    assert found == list(range(found[0], found[-1] + 1))
    last = "" if found[-1] == len(KAFKA) - 1 else KAFKA[found[-1]].name
    return KAFKA[found[0]].name, last


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("do not know the streams protocol", ("0.10.0.0", "4.0.2")),
        ("early access only (KIP-1071)", ("4.1.0", "4.1.2")),
        ("KAFKA-20254", ("4.2.0", "4.2.0")),
    ],
)
def test_brokers_below_4_2_1_are_refused_with_their_reason(words, names):
    """`Feature` of kafka-server-common, Kafka's notes of 4.1.0 and 4.2.0, and KAFKA-20254."""
    assert names_with(lambda release: words in broker_row(release).refused) == names


def test_brokers_that_are_not_refused_have_an_assignor_and_the_level_that_new_clusters_have():
    """`GroupCoordinatorConfig` and `StreamsVersion` of 4.2.2, 4.3.1 and 4.4.0."""
    assert names_with(lambda release: not broker_row(release).refused) == ("4.2.1", "")
    assert FIRST_BROKERS == "4.2.1"
    assert names_with(lambda release: broker_row(release).assignor == "sticky") == ("4.2.1", "")
    assert names_with(lambda release: broker_row(release).assignor) == ("4.2.1", "")
    assert names_with(lambda release: broker_row(release).streams_version == 1) == ("4.2.0", "")
    assert names_with(lambda release: broker_row(release).streams_version) == ("4.2.0", "")


def test_offsets_and_static_members_need_4_4_on_both_sides():
    """StreamsGroupHeartbeatRequest: version 1 is of 4.4.0, as its classes and brokers showed."""
    newest = KAFKA[-1]
    assert names_with(lambda brokers: reports_offsets(newest, brokers)) == ("4.4.0", "")
    assert names_with(lambda members: reports_offsets(members, newest)) == ("4.4.0", "")
    assert FIRST_STATIC == "4.4"
