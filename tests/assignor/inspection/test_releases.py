"""Releases that write a given subscription, compared with the whole release table."""

import pytest

from assignor.inspection.releases import CONSUMER_PROTOCOL_SINCE, releases_writing
from probing import RELEASES, find_release
from tests.versions import LAST_WITH_11, LATER

PINS_2 = ("0.10.1", "0.10.2", "0.11.0", "1.0", "1.1")


def consumer_version(release):
    return [
        v for since, v in CONSUMER_PROTOCOL_SINCE if find_release(since).order <= release.order
    ][-1]


@pytest.mark.parametrize(
    ("wrote", "spelled", "values"),
    [
        ((1, -1, 0), "0.10.0.0-0.10.0.1, or 0.10.2.2, 0.11.0.3, 1.0.2, 1.1.1-2.3.1 pinned",
         ("0.10.0",)),
        ((2, -1, 0), "0.10.1.0-1.1.1, or 2.0.0-2.3.1 pinned", PINS_2),
        ((2, -1, 1), "2.4.0-3.3.2 pinned", PINS_2),
        ((2, -1, 3), "3.4.0-3.9.2 pinned", PINS_2),
        ((3, 3, 0), "2.0.0-2.0.1", ()),
        ((4, 4, 0), "2.1.0-2.3.1", ()),
        ((7, 7, 1), "2.6.0", ()),
        ((8, 8, 1), "2.6.1-2.7.2", ()),
        ((11, 11, 1), "3.2.0-3.3.2", ()),
        ((4, 11, 3), f"3.4.0-{LAST_WITH_11}", ()),
        ((10, 10, 3), "3.0.0-3.1.2", ()),
        ((LATER, LATER, 3), "unknown", ()),
    ],
)  # fmt: skip
def test_numbers_and_consumer_protocol_name_the_releases(wrote, spelled, values):
    found = releases_writing(*wrote)
    assert (found.spelled, found.pin_values) == (spelled, values)


@pytest.mark.parametrize("release", [r for r in RELEASES if not r.is_native], ids=lambda r: r.name)
def test_every_release_is_among_those_that_write_what_it_writes(release):
    consumer = consumer_version(release)
    supported = release.latest_version if release.latest_version >= 3 else -1
    own = releases_writing(release.latest_version, supported, consumer)
    assert release.name in own.releases
    assert own.latest >= release.latest_version
    for value, row in release.upgrade_from.items():
        if row.pinned_version is not None:
            pinned = releases_writing(row.pinned_version, -1, consumer)
            assert release.name in pinned.pinned
            assert value in pinned.pin_values


def test_native_members_report_what_they_read_and_whether_they_are_pinned():
    assert releases_writing(11, 11, 1, native=101).spelled == "native v101"
    assert releases_writing(2, -1, 1, native=101, pin=2).spelled == "native v101 pinned"
    assert releases_writing(103, 103, 1).spelled == "native v103"
    assert releases_writing(101, 101, 1, native=101).releases == ()
