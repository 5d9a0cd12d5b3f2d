"""The verdict of a soak: each planted violation fails its own check."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from system_tests.live.evidence.records import Coverage
from system_tests.soak.findings import Figures, Finding, SoakOutcome, Trouble
from system_tests.soak.gauges import GAUGES, Growth
from system_tests.soak.options import SoakOptions
from system_tests.soak.report import outcome_json, summary_lines
from system_tests.soak.verdict import check_soak


def growth(process="member a", gauge="memory", last=60.0):
    return Growth(
        process=process,
        gauge=gauge,
        samples=100,
        first=50.0,
        last=last,
        most=last,
        per_hour=last - 50.0,
        bound=16.0,
    )


def figures(*troubles):
    found = Figures(disturbances=Counter({"member killed": 2}), settled=3)
    found.note_recovery("member killed", 6.5)
    for trouble in troubles:
        found.note_finding(
            Finding(trouble=trouble, at_s=1.0, disturbance=1, sentence="what happened")
        )
    return found


def outcome(*troubles, produced=10, missing=(), growths=(), unsettled=None, early=None, **more):
    usual = [growth(gauge=gauge) for gauge in more.pop("gauges", GAUGES)]
    return SoakOutcome(
        figures=figures(*troubles),
        coverages=(Coverage(partition=0, produced=produced, missing=missing, duplicates=3),),
        growths=(*usual, *growths),
        unsettled=unsettled,
        early=early,
        seconds=60.0,
        journal_bytes=100,
        **more,
    )


def failed(found):
    return [check.name for check in check_soak(found).checks if not check.ok]


def test_a_soak_that_ended_early_can_be_good():
    assert failed(outcome()) == []
    assert failed(outcome(early="it was interrupted")) == []


@pytest.mark.parametrize("trouble", list(Trouble))
def test_a_finding_makes_its_own_check_fail(trouble):
    assert failed(outcome(trouble)) == [trouble.value]


@pytest.mark.parametrize(
    ("planted", "name"),
    [
        ({"missing": ((4, 4),)}, "records"),
        ({"produced": 0}, "records"),
        ({"unsettled": "no member is alive"}, "settled"),
        ({"growths": (growth(last=90.0),)}, "memory"),
        ({"growths": (growth(gauge="descriptors", last=90.0),)}, "descriptors"),
        ({"growths": (growth(gauge="threads", process="soak", last=90.0),)}, "threads"),
    ],
)
def test_a_loss_a_leak_and_an_unsettled_end_are_found(planted, name):
    assert failed(outcome(**planted)) == [name]


def checks_of(found):
    return {check.name: check for check in check_soak(found).checks}


def test_too_few_samples_are_not_decided_and_every_output_reports_it():
    few = ("member b: 3 samples of descriptors, 8 are needed",)
    found = outcome(gauges=("memory", "threads"), undecided={"descriptors": few})
    checks = checks_of(found)
    assert [name for name, check in checks.items() if not check.is_decided] == ["descriptors"]
    assert checks["descriptors"].sentence == f"not decided: {few[0]}"
    assert failed(found) == []
    lines = [line for line, _ in summary_lines(found, check_soak(found), OPTIONS)]
    assert f"  ----  descriptors  not decided: {few[0]}" in lines
    assert lines[-1].endswith("; not decided: descriptors")
    document = json.loads(outcome_json(found, check_soak(found), OPTIONS))
    states = {check["name"]: (check["ok"], check["decided"]) for check in document["checks"]}
    assert states["descriptors"] == (None, False)
    assert states["threads"] == (True, True)
    assert document["undecided"] == ["descriptors"]


def test_a_process_with_too_few_samples_beside_a_decided_one_is_named():
    few = ("member b: 3 samples of memory, 8 are needed",)
    check = checks_of(outcome(undecided={"memory": few}))["memory"]
    assert check.ok
    assert not check.is_decided
    assert check.sentence.endswith(f"; not decided: {few[0]}")


def test_a_leak_is_a_leak_also_where_another_process_cannot_be_decided():
    found = outcome(growths=(growth(last=90.0),), undecided={"memory": ("member b: 3 samples",)})
    assert failed(found) == ["memory"]
    assert checks_of(found)["memory"].is_decided


def test_a_gauge_that_failed_is_an_error_of_the_report():
    found = outcome(gauge_failures=("member a: memory and threads cannot be read: denied",))
    assert failed(found) == ["memory", "descriptors", "threads"]
    sentence = checks_of(found)["memory"].sentence
    assert sentence == "the gauges failed: member a: memory and threads cannot be read: denied"
    assert not check_soak(found).ok


def test_the_memory_of_a_jvm_is_shown_and_not_decided():
    found = outcome(growths=(growth(process="broker", last=500.0),))
    assert failed(found) == []
    assert any("broker" in line for line, _ in summary_lines(found, check_soak(found), OPTIONS))


OPTIONS = SoakOptions(seed=11)


def test_the_summary_ends_with_the_verdict_and_lists_the_findings():
    found = outcome(Trouble.OWNERS)
    lines = [line for line, _ in summary_lines(found, check_soak(found), OPTIONS)]
    assert lines[-1] == "bad: 1.0 minutes, 2 disturbances, seed 11"
    assert "  at 1 s, disturbance 1: what happened" in lines
    assert any("member killed" in line and "6.5 s" in line for line in lines)


def test_the_sizes_on_disk_are_shown_with_a_real_broker_and_without():
    def sizes(found):
        lines = [line for line, _ in summary_lines(found, check_soak(found), OPTIONS)]
        return next(line for line in lines if "on disk" in line)

    assert sizes(outcome()) == "  on disk: 0.0 MiB of events"
    real = replace(outcome(), broker_bytes=3 * 1024 * 1024)
    assert sizes(real).endswith("3.0 MiB of the broker's records and logs")


def test_the_json_has_figures_checks_and_findings():
    found = outcome(Trouble.CALM)
    document = json.loads(outcome_json(found, check_soak(found), OPTIONS))
    assert document["ok"] is False
    assert document["disturbances"]["member killed"]["recovery_s"]["median"] == 6.5
    assert [finding["trouble"] for finding in document["findings"]] == ["calm"]
    assert {row["process"] for row in document["growth"]} == {"member a"}
    assert [check["name"] for check in document["checks"] if not check["ok"]] == ["calm"]
