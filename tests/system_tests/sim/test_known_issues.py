"""Known issues: each row matches its example, and nothing else."""

import pytest

from probing import find_release
from system_tests.sim import KNOWN, BounceOptions, Shape, known_issues, not_modelled, run_bounce


def shape(old, new, *, threads=1, static=False, faults=(), offline=False):
    return Shape(
        old=find_release(old),
        new=find_release(new),
        threads=threads,
        static=static,
        faults=frozenset(faults),
        offline=offline,
    )


EXAMPLES = {
    "no path": shape("2.0.1", "2.3.0"),
    "static rollback": shape("3.9.1", "2.8.2", static=True),
    "repeated tasks": shape("2.3.0", "3.9.1", threads=2),
    "KAFKA-14382": shape("2.8.2", "3.3.1", faults=["slow"]),
    "KAFKA-9525": shape("2.3.1", "2.5.0", static=True),
    "KAFKA-9821": shape("2.4.1", "2.5.1", static=True, faults=["crash"]),
    "fenced by a failover": shape("3.8.1", "3.9.1", static=True, faults=["coordinator"]),
    "KAFKA-10455": shape("2.6.0", "3.9.1", static=True, faults=["crash"]),
}


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.issue)
def test_each_known_issue_matches_its_example(row):
    assert row.issue in known_issues(EXAMPLES[row.issue])
    assert row.why


def test_most_paths_match_no_known_issue():
    assert known_issues(shape("3.3.2", "3.9.1", threads=3, static=True, faults=["slow"])) == ()
    assert known_issues(shape("3.1.2", "native")) == ()
    assert known_issues(shape("native", "next", static=True)) == ()


def test_threads_repeat_tasks_under_old_leaders_on_the_way_down_only_after_a_crash():
    assert known_issues(shape("2.3.1", "3.9.1", threads=2)) == ()
    assert known_issues(shape("2.4.1", "2.0.1", threads=2)) == ()
    assert "repeated tasks" in known_issues(shape("2.4.1", "2.0.1", threads=2, faults=["crash"]))


def test_an_offline_upgrade_matches_no_known_issue():
    assert known_issues(shape("2.0.1", "2.3.0", offline=True)) == ()
    assert known_issues(shape("3.9.1", "2.8.2", static=True, offline=True)) == ()


@pytest.mark.parametrize("waits", [True, False])
def test_a_static_rollback_is_good_if_and_only_if_members_wait_for_their_sessions(waits):
    outcome = run_bounce(
        BounceOptions(seed=2, old="3.9.2", new="3.1.2", static=True, waits_for_sessions=waits)
    )
    assert outcome.ok is waits
    assert outcome.known == (() if waits else ("static rollback",))
    ended = [broken.rule for broken in outcome.broken]
    assert ("nobody dies" in ended) is not waits


def test_formats_and_subtopologies_are_named_where_they_decide_and_nowhere_else():
    def lines(old, new):
        return " | ".join(not_modelled(find_release(old), find_release(new)))

    for old, new in (("3.2", "3.3"), ("3.9", "3.2")):
        assert "foreign-key join" in lines(old, new)
    assert "KIP-904" in lines("3.4", "3.5")
    assert "more than one subtopology" in lines("2.0.1", "3.4")
    assert "suppress() buffers (KAFKA-8452)" in lines("2.3.1", "2.4")
    assert lines("3.5", "4.3") == lines("2.6", "3.2") == lines("3.9", "native") == ""
