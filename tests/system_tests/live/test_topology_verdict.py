"""The oracle of a rolling change of the topology finds each kind of mistake."""

import pytest

from system_tests.live.topologies import broken_rules
from system_tests.topology_changes import ChangeKind

WRITTEN = {"words": {0: 5}}
GOOD = {"counts": {0: [0, 1, 2, 3, 4]}, "totals": {0: [2, 3, 4]}}


def test_a_change_without_mistakes_breaks_no_rule():
    assert broken_rules(ChangeKind.CHANGE, WRITTEN, GOOD) == ()
    renamed = {"counts": {0: [0, 1]}, "totals": {0: [2, 3, 4]}}
    assert broken_rules(ChangeKind.RENAME, WRITTEN, renamed) == ()


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
