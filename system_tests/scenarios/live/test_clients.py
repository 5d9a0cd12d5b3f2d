"""Rolling bounces of members on each client, of two clients in a group, of cooperative ones."""

import sys

import pytest

from system_tests.live.bounce import run_live_bounce
from system_tests.live.events import AssignmentTaken
from system_tests.live.events import PartitionsRevoked as Revoked
from system_tests.live.options import LiveOptions
from system_tests.live.plan import LivePlan, Stage
from system_tests.live.screen import SilentScreen

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.nightly("8 s; every run bounces two clients in one group with new brokers")
def test_two_aiokafka_and_two_kafka_python_members_are_upgraded_in_one_group(bounce):
    run = bounce("--from 3.1 --to native --members 4 --client mixed --seed 7")
    assert (run.status, run.failed()) == (0, [])
    clients = [member["client"] for member in run.report["members"]]
    assert clients == ["kafka-python", "aiokafka"] * 2
    assert set(run.numbers("versions")["used"].values()) == {101}


def test_a_group_on_aiokafka_alone_survives_a_crash_of_its_leader(bounce):
    run = bounce("--from 3.4 --to 3.9 --client aiokafka --kill leader --session-timeout-ms 6000")
    assert run.report["failure"] is None
    checks = {check["name"]: check for check in run.report["checks"]}
    assert checks["versions"]["ok"], checks["versions"]["sentence"]
    assert checks["records"]["numbers"]["missing"] == 0


def test_a_group_on_confluent_kafka_is_upgraded(bounce):
    run = bounce("--from 3.1 --to native --client confluent")
    assert (run.status, run.failed()) == (0, [])
    assert [member["client"] for member in run.report["members"]] == ["confluent"] * 3


@pytest.mark.nightly("20 s, a session; every run kills a leader, and upgrades confluent-kafka")
def test_a_group_on_confluent_kafka_survives_the_death_of_its_leader(bounce):
    run = bounce(
        "--from 3.1 --to native --client confluent --kill leader --session-timeout-ms 15000"
    )
    assert run.report["failure"] is None
    checks = {check["name"]: check for check in run.report["checks"]}
    assert checks["versions"]["ok"], checks["versions"]["sentence"]
    assert checks["owners"]["ok"], checks["owners"]["sentence"]
    assert checks["records"]["numbers"]["missing"] == 0


@pytest.mark.nightly(
    "8 s; every run has confluent-kafka, and cooperative members of another client"
)
def test_cooperative_members_on_confluent_kafka_are_bounced(bounce):
    run = bounce("--from native --to next --protocol cooperative --client confluent")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["version"] == 0


def test_from_eager_to_cooperative_in_two_bounces(bounce):
    run = bounce("--from 2.3 --to native --protocol cooperative --seed 3")
    assert (run.status, run.failed()) == (0, [])
    assert [b["rebalance_protocol"] for b in run.report["bounces"]] == ["eager", "cooperative"]


@pytest.mark.nightly("7 s; every run goes from eager to cooperative members")
def test_cooperative_and_eager_native_members_in_one_group(bounce):
    run = bounce("--from native --to next --protocol cooperative --client mixed --members 4")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["version"] == 0
    assert set(run.numbers("versions")["used"].values()) == {102}


def revoked_though_kept(reports):
    """Partitions that a member revoked although it was assigned them again; its end left out."""
    by_incarnation = {}
    for report in reports:
        by_incarnation.setdefault((report.member, report.incarnation), []).append(report.event)
    found = []
    for incarnation, own_events in by_incarnation.items():
        ends = [number for number, event in enumerate(own_events) if isinstance(event, Revoked)][
            -1:
        ]
        kept = set()
        for number, event in enumerate(own_events):
            if isinstance(event, AssignmentTaken):
                kept = {int(task.partition("_")[2]) for task in event.active_tasks}
            elif isinstance(event, Revoked) and number not in ends:
                found += [
                    (incarnation, partition) for partition in kept.intersection(event.partitions)
                ]
    return found


def test_a_cooperative_group_gives_up_only_what_moves():
    stage = Stage(
        release="native", upgrade_from=None, latest_version=101, rebalance_protocol="cooperative"
    )
    plan = LivePlan(before=stage, stages=(stage,), promised_versions=(101,))
    options = LiveOptions(
        rate=50.0, heartbeat_ms=100, session_timeout_ms=60_000, settle_timeout_s=240
    )
    outcome = run_live_bounce(options, plan, SilentScreen(sys.stderr, ("a", "b", "c")))
    assert outcome.failure is None
    checks = {check.name: check for check in outcome.verdict.checks}
    assert [c.sentence for c in checks.values() if c.name != "pauses" and not c.ok] == []
    assert len([report for report in outcome.reports if isinstance(report.event, Revoked)]) > 3
    assert revoked_though_kept(outcome.reports) == []
