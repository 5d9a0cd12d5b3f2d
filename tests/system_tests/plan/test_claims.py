"""What `make rehearse-claims` reports and stores, without members, and what plans read of it."""

import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest

import probing
from probing import upgrades as data
from system_tests.support.claims import (
    CLAIMS,
    MemberEnded,
    Run,
    WrongResults,
    rehearse,
)
from system_tests.support.claims.experiments import EXPERIMENTS
from system_tests.support.claims.runner import STORED
from system_tests.support.claims.workloads import WORKLOADS
from system_tests.support.jvm.topologies import TOPOLOGIES
from system_tests.support.member import NotInTime

ROOT = Path(probing.__file__).parents[1]
BY_NAME = {claim.name: claim for claim in CLAIMS}
REMOVED, BACK = BY_NAME["exactly-once-removed"], BY_NAME["back-without-state"]
WORKS = "works, results are right"


class Members:
    """An application whose members do what a test says."""

    def __init__(self, error=None):
        self.error = error
        self.started = []

    def start(self, name, release, **_):
        self.started.append((name, release))
        if self.error is not None:
            raise self.error

    def process(self):
        pass

    stop = delete_state = process_all = lambda *_: None


def run(claim, error=None, store=None):
    """Rehearse one claim; return whether it holds, and the lines."""
    lines = []
    opened = lambda *_: nullcontext(Members(error))  # noqa: E731 short
    return rehearse([claim], opened, lines.append, store=store), lines


def test_a_claim_that_members_contradict_is_reported_and_fails():
    holds, lines = run(REMOVED)
    assert not holds
    assert len(lines) == len(REMOVED.runs)
    for line, pair in zip(lines, REMOVED.runs, strict=True):
        assert line.startswith(f"differs exactly-once-removed, {pair}: expected: {pair.new} ends")
        assert line.endswith(f"; seen: {WORKS}\n")


def test_a_claim_that_members_confirm_is_ok():
    holds, lines = run(BACK)
    assert holds
    assert lines[0] == (
        f"ok      back-without-state, 2.2.2 and 2.3.1: expected: {WORKS}; seen: {WORKS}\n"
    )


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (MemberEnded("2.3.1", "KafkaException: x"), "2.3.1 ends: KafkaException: x"),
        (WrongResults("1 of 3, as 4, not 3"), "results are wrong: 1 of 3, as 4, not 3"),
        (NotInTime("right results did not come"), "not finished: right results did not come"),
    ],
)
def test_whatever_goes_wrong_differs_from_a_claim_that_all_works(error, seen):
    holds, lines = run(BACK, error)
    assert not holds
    assert lines[0].endswith(f"seen: {seen}\n")


@pytest.mark.parametrize(
    ("ends", "why", "holds"),
    [
        ("4.0.2", "ConfigException: Invalid value exactly_once for configuration", True),
        ("4.0.2", "ConfigException: another value", False),
        ("3.9.2", "ConfigException: Invalid value exactly_once for configuration", False),
        ("", "", False),
    ],
)
def test_the_member_that_ends_and_its_exception_are_those_of_the_claim(ends, why, holds):
    pair = REMOVED.runs[0]
    assert (pair.old, pair.new) == ("3.9.2", "4.0.2")
    claim = type(REMOVED)(
        name="a",
        says="b",
        experiment="start new",
        runs=REMOVED.runs,
        ends="new",
        why="Invalid value exactly_once",
    )
    seen = type(claim.expected(pair))(ends=ends, why=why)
    assert claim.holds(pair, seen) is holds


def test_either_member_may_end_where_a_claim_says_so():
    claim = BY_NAME["foreign-key-beside-3.3"]
    pair = claim.runs[0]
    kind = type(claim.expected(pair))
    ends = [claim.holds(pair, kind(ends=name, why=claim.why)) for name in (pair.old, pair.new, "")]
    assert ends == [True, True, False]


@pytest.mark.parametrize("topology", sorted(WORKLOADS))
def test_each_batch_changes_the_result_of_every_key(topology):
    results = [WORKLOADS[topology].results(batches) for batches in range(1, 6)]
    assert len({frozenset(result) for result in results}) == 1
    for key in results[0]:
        assert len({result[key] for result in results}) == len(results)


def test_results_are_stored_in_the_order_of_the_claims_and_replaced(tmp_path):
    store = tmp_path / "experiments.toml"
    run(BACK, store=store)
    run(REMOVED, store=store)
    rows = tomllib.loads(store.read_text(encoding="utf-8"))["result"]
    assert [row["claim"] for row in rows] == [
        claim.name for claim in CLAIMS for _ in claim.runs if claim in (REMOVED, BACK)
    ]
    assert {row["as_expected"] for row in rows if row["claim"] == REMOVED.name} == {False}
    run(REMOVED, MemberEnded("4.0.2", f"ConfigException: {REMOVED.why}"), store=store)
    rows = tomllib.loads(store.read_text(encoding="utf-8"))["result"]
    assert [row["as_expected"] for row in rows if row["claim"] == REMOVED.name] == [True, False]


def test_every_claim_was_run_with_its_releases_and_holds():
    rows = tomllib.loads(STORED.read_text(encoding="utf-8"))["result"]
    found = [(row["claim"], Run(old=row["old"], new=row["new"], pin=row["pin"])) for row in rows]
    assert found == [(claim.name, pair) for claim in CLAIMS for pair in claim.runs]
    assert [row for row in rows if not row["as_expected"]] == []


def test_rows_name_claims_that_exist():
    for path in (
        "probing/releases/releases.toml",
        "system_tests/plan/changes/changes.toml",
        "system_tests/plan/changes/streams.toml",
    ):
        tables = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))
        rows = [row for table in tables.values() if isinstance(table, list) for row in table]
        named = {name for row in rows for name in row.get("claims", ())}
        assert named <= set(BY_NAME)


def test_claims_use_experiments_and_topologies_that_exist():
    assert {claim.experiment for claim in CLAIMS} == set(EXPERIMENTS)
    assert {claim.topology for claim in CLAIMS} == set(TOPOLOGIES) == set(WORKLOADS)


def test_evidence_names_the_releases_of_an_experiment_or_says_that_there_is_none():
    shown = data.seen_with(["exactly-once-removed"])
    assert shown.startswith("run with 3.9.2 + 4.0.2, 3.9.2 + 4.4.0: the newer one ends: Config")
    assert data.seen_with([]) == data.seen_with(["nothing"]) == "by Kafka's notes, not run"
