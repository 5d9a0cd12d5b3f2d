"""The oracle of a rolling change of the topology finds each kind of mistake."""

import pytest

from system_tests.live.topologies import broken_rules
from system_tests.live.topologies.verdict import expected_counts
from system_tests.topology_changes import ChangeKind

WRITTEN = {"words": {0: 5}}
GOOD = {"counts": {0: [0, 1, 2, 3, 4]}, "totals": {0: [2, 3, 4]}}


def test_a_change_without_mistakes_breaks_no_rule():
    assert broken_rules(ChangeKind.CHANGE, WRITTEN, GOOD) == ()
    renamed = {"counts": {0: [0, 1]}, "totals": {0: [2, 3, 4]}}
    assert broken_rules(ChangeKind.RENAME, WRITTEN, renamed) == ()


def test_a_change_that_is_taken_back_breaks_no_rule():
    gone = {"counts": {0: [0, 1, 2, 3, 4]}, "totals": {0: [2, 3]}}
    assert broken_rules(ChangeKind.CHANGE, WRITTEN, gone, taken_back=True) == ()
    renamed = {"counts": {0: [0, 1, 4]}, "totals": {0: [2, 3]}}
    assert broken_rules(ChangeKind.RENAME, WRITTEN, renamed, taken_back=True) == ()
    both = {"words": {0: 3}, "extra": {0: 3}}
    whole = {"counts": {0: [0, 1, 2]}, "extras": {0: [0, 1]}}
    assert broken_rules(ChangeKind.ADD, both, whole, taken_back=True) == ()
    assert expected_counts(ChangeKind.ADD, both, taken_back=True) == {"counts": 3, "extras": None}
    assert expected_counts(ChangeKind.REMOVE, both, taken_back=True) == {"counts": 3, "extras": 3}


@pytest.mark.parametrize(
    ("kind", "counted", "sentence"),
    [
        ("change", {"counts": {0: [0, 1, 2, 4]}, "totals": {0: [2]}}, "left out records"),
        ("change", {"counts": {0: [0, 1, 2, 3]}, "totals": {0: [2]}}, "counted 4 of 5"),
        ("change", GOOD, "counts to the end"),
        ("rename", {"counts": {0: [0, 1, 3, 4]}, "totals": {0: [3]}}, "counted 4 + 1 of 5"),
        ("rename", {"counts": {0: [0, 1, 4]}, "totals": {0: [3]}}, "counted 3 + 1 of 5"),
        ("rename", {"counts": {0: [0, 1]}, "totals": {0: [2, 3, 4]}}, "does not count to"),
    ],
)
def test_each_mistake_on_the_way_back_breaks_a_rule(kind, counted, sentence):
    rules = broken_rules(ChangeKind(kind), WRITTEN, counted, taken_back=True)
    assert any(sentence in rule for rule in rules)


@pytest.mark.parametrize(
    ("kind", "counted", "sentence"),
    [
        ("change", GOOD | {"counts": {0: [0, 1, 1, 2, 3, 4]}}, "1 follows 1"),
        ("change", GOOD | {"counts": {0: [0, 1, 2, 4]}}, "left out records"),
        ("change", GOOD | {"counts": {0: [0, 1, 2, 3]}}, "counted 4 of 5"),
        ("change", GOOD | {"totals": {0: [2, 4]}}, "left out records"),
        ("change", GOOD | {"totals": {0: [2, 3]}}, "does not count to record 4"),
        ("rename", {"counts": {0: [1]}, "totals": {0: [2, 3, 4]}}, "left out records before 1"),
        ("rename", {"counts": {0: [0, 1, 2]}, "totals": {0: [2, 3, 4]}}, "begins at 2"),
        ("rename", {"counts": {0: [0]}, "totals": {0: [2, 3, 4]}}, "ended at 0"),
    ],
)
def test_each_mistake_breaks_a_rule(kind, counted, sentence):
    assert any(sentence in rule for rule in broken_rules(ChangeKind(kind), WRITTEN, counted))


BOTH = {"words": {0: 3}, "extra": {0: 3}}
ALL = {0: [0, 1, 2]}


@pytest.mark.parametrize(
    ("kind", "written", "counted", "taken_back", "sentence"),
    [
        ("add", BOTH, {"counts": ALL}, True, "extras counted no record, as if no new program"),
        ("change", WRITTEN, {"counts": GOOD["counts"]}, True, "totals counted no record"),
        ("rename", WRITTEN, {"counts": GOOD["counts"]}, True, "totals counted no record"),
        ("remove", BOTH, {"counts": ALL}, False, "extras counted no record, as if no old program"),
        ("rename", WRITTEN, {"totals": GOOD["counts"]}, False, "counts counted no record"),
        ("change", WRITTEN, GOOD | {"totals": GOOD["counts"]}, False, "totals begins at 0"),
        ("change", {}, {}, False, "no record was written to words"),
        ("remove", {"words": {0: 3}}, {"counts": ALL}, True, "no record was written to extra"),
    ],
)
def test_a_run_that_shows_nothing_breaks_a_rule(kind, written, counted, taken_back, sentence):
    rules = broken_rules(ChangeKind(kind), written, counted, taken_back=taken_back)
    assert any(sentence in rule for rule in rules), rules
