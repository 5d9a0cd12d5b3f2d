"""Defects of releases in a plan: which paths they concern, and what to do about them."""

import re
from itertools import permutations

import pytest

from probing import RELEASES, find_release
from system_tests.plan import CHANGES, Subject, Use, changes_between, make_plan


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def lines(old, new, *uses):
    return [str(change) for change in plan(old, new, *uses).changes]


def has(old, new, words, *uses):
    return any(words in line for line in lines(old, new, *uses))


DEFECTS = [row for row in CHANGES if row.subject is Subject.DEFECT]
EACH = [release for release in RELEASES if not release.is_native]


def test_a_defect_begins_and_ends_where_its_tracker_and_the_jars_say():
    """Stated a second time: a wrong number in a row is otherwise a plan that nobody questions."""
    assert {re.findall(r"KAFKA-\d+|KIP-\d+", row.source)[-1]: row.ranges for row in DEFECTS} == {
        "KAFKA-14646": (("3.3.0", "3.4.0"),),
        "KAFKA-10173": (("2.4.0", "2.5.1"),),
        "KAFKA-12508": (("2.6.0", "2.6.2"), ("2.7.0", "2.7.1")),
        "KAFKA-14172": (("2.6.0", "3.4.1"),),
        "KAFKA-9891": (("0.11.0.0", "2.5.1"),),
        "KAFKA-16017": (("2.6.0", "3.6.2"),),
        "KAFKA-19012": (("2.8.0", "3.9.2"), ("4.0.0", "4.0.2"), ("4.1.0", "4.1.2")),
        "KAFKA-19479": (("0.11.0.0", "3.9.2"), ("4.0.0", "4.0.2"), ("4.1.0", "4.1.1")),
        "KAFKA-19668": (("4.0.0", "4.0.1"), ("4.1.0", "4.1.1")),
        "KAFKA-19748": (("4.1.0", "4.1.1"),),
        "KAFKA-20685": (("3.8.0", "4.2.2"),),
        "KAFKA-20688": (("4.3.0", "4.3.1"),),
    }


def test_a_defect_concerns_only_the_releases_that_have_it():
    assert has("4.2", "4.3.0", "KAFKA-20616")
    assert not has("4.2", "4.3.1", "KAFKA-20616")
    assert has("4.3.1", "4.3.0", "KAFKA-20616")  # also on the way back


def test_a_defect_of_both_ends_of_an_upgrade_is_named_as_the_target_can_be_another():
    assert has("2.8", "3.4.0", "as in 2.8.2, state may be silently wrong", Use.EOS)
    assert has("2.8", "3.9.1", "as in 2.8.2, records are lost")
    assert not has("2.8", "3.9.2", "as in 2.8.2")
    assert has("3.4.0", "3.5.1", "defect, 3.5.1 (since 0.11.0.0): as in 3.4.0")
    assert not has("3.4.0", "3.3.2", "KAFKA-14172")


@pytest.mark.parametrize(
    ("old", "new", "fixed"), [("3.9", "4.0.1", "4.0.2"), ("4.0", "4.1.0", "4.1.1")]
)
def test_a_release_that_loses_records_is_named_with_its_fix(old, new, fixed):
    assert any(f"take {fixed}" in line for line in lines(old, new) if "KAFKA-19479" in line)
    assert not has(old, fixed, "KAFKA-19479")
    assert not has(old, new, "KAFKA-19479", Use.EOS)


@pytest.mark.parametrize("row", DEFECTS, ids=lambda row: row.source[:11])
def test_a_defect_names_releases_without_it_that_fit_the_direction_and_the_target(row):
    assert not re.search(r"\d\.\d", row.action)
    uses = row.uses or ()
    for old, new in permutations(EACH, 2):
        for change in changes_between((old, new), uses, [row]):
            taken = change.action.partition("take ")[2].partition(", or set")[0]
            names = [find_release(name) for name in re.findall(r"\d+(?:\.\d+){2,3}", taken)]
            assert not any(map(row.is_in, names))
            if old.order < new.order:
                assert all(new.order < found.order for found in names)
                later = [found for found in EACH if found.order > new.order]
                assert names or all(map(row.is_in, later))
            else:
                assert {found.series for found in names} <= {new.series}
                assert all(new.order < found.order < old.order for found in names)
                assert change.action


@pytest.mark.parametrize(
    ("old", "new", "issue", "action"),
    [
        ("4.2.2", "4.1.2", "KAFKA-20685", "delete the state directory of a member that was killed"),
        ("4.3.1", "2.3.1", "KAFKA-19479", "no later patch of 2.8 below 4.3.1 lacks it"),
        ("4.3.1", "4.1.0", "KAFKA-19748", "take 4.1.1 to 4.1.2"),
        ("3.9.1", "4.0.0", "KAFKA-20685", "take 4.2.2 or later, or delete the state directory"),
        ("2.5.1", "2.7.0", "KAFKA-12508", "take 2.7.1 or later"),
        ("2.5.1", "2.6.1", "KAFKA-12508", "take 2.6.2 to 2.6.3, or 2.7.1 or later"),
        ("2.3.1", "4.3", "KAFKA-20685", "4.3.1, where the path ends, lacks it; delete the state"),
    ],
)
def test_the_remedy_of_a_defect_follows_from_its_ranges_and_the_path(old, new, issue, action):
    uses = (Use.EOS,) if issue == "KAFKA-20685" else ()
    (found,) = (c for c in plan(old, new, *uses).changes if issue in c.source)
    assert found.action.startswith(action)
    assert "which the group leaves" not in found.action
