from probing import EARLIEST_PROBEABLE_VERSION, NO_REBALANCE, UNKNOWN_VERSION
from probing.versions import greatest_known_version


def test_the_greatest_known_version_is_never_above_the_offer():
    known = (1, 2, 3, 101)
    found = {at_most: greatest_known_version(known, at_most=at_most) for at_most in range(1, 110)}
    assert set(found.values()) == set(known)
    assert all(version <= at_most for at_most, version in found.items())
    assert found[100] == 3
    assert found[101] == 101


def test_the_order_of_the_known_versions_does_not_matter():
    assert greatest_known_version((101, 1, 3, 2), at_most=50) == 3


def test_below_every_known_version_there_is_none():
    assert greatest_known_version((3, 4), at_most=2) is None
    assert greatest_known_version((), at_most=2) is None


def test_the_numbers_of_the_protocol_are_those_of_kafka():
    assert (EARLIEST_PROBEABLE_VERSION, UNKNOWN_VERSION) == (3, -1)
    assert NO_REBALANCE == 9223372036854775807
