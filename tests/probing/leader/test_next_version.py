"""The table of next versions with every combination of inputs of a native leader."""

import itertools

import pytest

from probing import NEXT_VERSION_RULES
from probing.leader.next_version import NextVersionNumbers
from probing.rules import always, first

KNOWN = (*range(1, 12), 101, 102)
WORLD = [
    NextVersionNumbers(
        pinned_version=pin,
        jvm_lowest_used=jvm,
        jvm_second_number=-1 if jvm in (1, 2) else second,
        lowest_native=native,
        level=level,
        known_versions=KNOWN,
    )
    for pin, jvm, second, native, level in itertools.product(
        (None, 1, 2), (None, *range(1, 12)), range(3, 12), (101, 102), (None, 1, 2, 9, 50, 101, 200)
    )
    if jvm is None or second >= jvm
]


def decided(numbers):
    rule = first(NEXT_VERSION_RULES, numbers)
    return rule.says(numbers), rule


def straight(numbers):
    """The designed table as plain code."""
    if numbers.pinned_version is not None:
        return numbers.pinned_version
    if numbers.jvm_lowest_used in (1, 2):
        return 3
    if numbers.jvm_lowest_used is not None:
        level = 11 if numbers.level is None else numbers.level
        return max(3, min(numbers.jvm_second_number, level))
    limit = numbers.lowest_native if numbers.level is None else numbers.level
    return max(v for v in (3, *KNOWN) if v == 3 or v <= min(limit, numbers.lowest_native))


def test_the_table_agrees_with_its_restatement_on_every_combination():
    assert [n for n in WORLD if decided(n)[0] != straight(n)] == []


def test_every_row_fires_and_the_last_one_always_holds():
    assert {decided(n)[1].name for n in WORLD} == {r.name for r in NEXT_VERSION_RULES}
    assert NEXT_VERSION_RULES[-1].holds is always


def test_without_a_pin_no_next_version_is_one_that_a_jvm_leader_cannot_raise_or_read():
    for numbers in WORLD:
        version, _ = decided(numbers)
        if numbers.pinned_version is None:
            assert version >= 3
            assert numbers.jvm_lowest_used is None or version <= 11


@pytest.mark.parametrize(
    ("level", "version"),
    [(None, 102), (200, 102), (102, 102), (101, 101), (100, 11), (11, 11), (4, 4), (2, 3), (0, 3)],
)
def test_the_finalized_level_caps_a_group_of_natives(level, version):
    numbers = NextVersionNumbers(
        pinned_version=None,
        jvm_lowest_used=None,
        jvm_second_number=11,
        lowest_native=102,
        level=level,
        known_versions=KNOWN,
    )
    assert decided(numbers)[0] == version


def test_every_row_has_a_sentence_with_its_numbers():
    for numbers in WORLD:
        version, rule = decided(numbers)
        why = rule.sentence(numbers, next_version=version)
        assert "{" not in why
        assert "None" not in why
        assert str(version) in why or rule.name == "as far as the JVM members go"
