"""Rolling bounces of real processes on the embedded broker, each with its verdict."""

import sys

import pytest

from probing import find_release
from system_tests.live.bounce import run_live_bounce
from system_tests.live.events import SubscriptionWritten
from system_tests.live.options import LiveOptions, Switches
from system_tests.live.plan import plan_path
from system_tests.live.screen import SilentScreen
from system_tests.scenarios.conftest import invoke

pytestmark = pytest.mark.timeout(900)


@pytest.mark.kip("268-19", "loop")
def test_a_bounce_among_native_members_costs_no_rebalance_for_the_version(bounce):
    run = bounce("--from native --to next --order leader-first")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("rebalances")["version"] == 0
    assert set(run.numbers("versions")["used"].values()) == {102}
    assert run.steps("rejoin") == []


@pytest.mark.kip("268-10", "loop")
@pytest.mark.parametrize(
    ("old", "new", "order"), [("2.8", "3.9.1", "leader-first"), ("2.4", "2.6", "leader-last")]
)
def test_one_bounce_without_a_setting_is_enough_in_any_order(bounce, old, new, order):
    run = bounce(f"--from {old} --to {new} --order {order}")
    assert (run.status, run.failed()) == (0, [])
    assert [b["upgrade_from"] for b in run.report["bounces"]] == [None]
    latest = find_release(new).latest_version
    assert set(run.numbers("versions")["used"].values()) == {latest}


@pytest.mark.kip("268-17", "loop")
@pytest.mark.nightly(
    "5 s; every run bounces from 101 to 103, past a version", but=("native-incompatible",)
)
@pytest.mark.parametrize(("old", "new"), [("native", "incompatible"), ("incompatible", "next")])
@pytest.mark.usefixtures("clock")
def test_a_next_version_with_other_layouts_is_bounced_to(old, new):
    """102 can be read by 101, 103 cannot; each differs by a field added, dropped and changed."""
    options = LiveOptions(
        order="leader-first",
        rate=50.0,
        heartbeat_ms=100,
        session_timeout_ms=60_000,
        settle_timeout_s=240,
    )
    plan = plan_path(old, new, Switches())
    outcome = run_live_bounce(options, plan, SilentScreen(sys.stderr, ("a", "b", "c")))
    assert (outcome.failure, outcome.ok) == (None, True)
    before, after = (find_release(name).latest_native_version for name in (old, new))
    written = [r.event.version for r in outcome.reports if isinstance(r.event, SubscriptionWritten)]
    assert before in written, "members that stayed wrote their version while others were bounced"
    assert set(outcome.used_versions.values()) == {after}
    assert outcome.verdict.numbers("rebalances")["version"] == 0


@pytest.mark.kip("268-13", "loop")
def test_below_2_0_two_bounces_with_upgrade_from_are_good(bounce):
    run = bounce("--from 0.10.2 --to 2.0")
    assert (run.status, run.failed()) == (0, [])
    assert [b["upgrade_from"] for b in run.report["bounces"]] == ["0.10.2", None]
    # While one version 2 subscription is in the group, the leader answers in 2; then in 3 at once.
    versions = [step["version"] for step in run.steps("assign")]
    assert versions == sorted(versions)
    assert set(versions) == {2, 3}
    assert run.numbers("rebalances")["version"] == 0


@pytest.mark.kip("268-18", "loop")
def test_below_2_0_without_the_pin_members_fail_and_the_right_value_is_named(bounce):
    run = bounce("--from 0.10.2 --to 2.0 --no-pin")
    assert run.status == 1
    assert not run.report["ok"]
    assert "version=3; set upgrade.from=0.10.2 on" in run.report["death"]["why"]
    assert "upgrade.from=0.10.2" in run.report["advice"]
    assert "upgrade.from=0.10.2" in run.stderr


@pytest.mark.kip("268-14", "loop")
def test_offline_the_same_upgrade_needs_no_pin(bounce):
    run = bounce("--from 0.10.2 --to 2.0 --offline")
    assert (run.status, run.failed()) == (0, [])
    assert set(run.numbers("versions")["used"].values()) == {3}
    assert [b["upgrade_from"] for b in run.report["bounces"]] == [None]
    assert run.numbers("pauses")["bound_ms"] is None


@pytest.mark.nightly("15 s; test_faults.py and test_clients.py kill leaders in every run")
def test_a_leader_killed_in_the_middle_costs_time_and_no_record(bounce):
    run = bounce("--from 2.8 --to 3.2 --members 5 --kill leader --session-timeout-ms 6000")
    assert run.report["failure"] is None
    # How long the pauses are, and who else loses its session, is the machine's business.
    assert run.numbers("records")["missing"] == 0
    assert set(run.numbers("versions")["used"].values()) == {11}
    assert run.numbers("pauses")["worst_ms"] > 3000


@pytest.mark.kip("268-5", "loop")
@pytest.mark.kip("268-6", "loop")
@pytest.mark.kip("268-7", "loop")
@pytest.mark.kip("268-9", "loop")
def test_an_old_leader_of_2_0_sends_the_new_member_down_and_up_again(bounce):
    run = bounce("--from 2.0.1 --to 2.3.1 --order leader-last")
    assert (run.status, run.failed()) == (0, [])
    probed = [step for step in run.steps("assign") if step["version_probing"]]
    assert probed
    assert {(step["version"], step["commonly_supported_version"]) for step in probed} == {(3, 3)}
    # KIP-268 as written: nothing for the future member, a normal answer for the others.
    assert all(len(step["empty_members"]) == 1 for step in probed)
    moves = {(step["used_version_before"], step["version"]) for step in run.steps("rejoin")}
    assert {(4, 3), (3, 4)} <= moves
    assert set(run.numbers("versions")["used"].values()) == {4}


def test_a_foreign_member_is_quarantined_and_all_others_continue(bounce):
    run = bounce("--from 3.1 --to native --garbage")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("quarantine") == {"quarantined": True}


def test_if_no_leader_quarantines_a_foreign_member_the_forced_bounce_is_bad(bounce):
    run = bounce("--from 3.1 --to 3.9 --garbage --force")
    assert run.status == 1
    assert "cannot be decoded" in run.report["failure"]


@pytest.mark.usefixtures("clock")
def test_a_bounce_is_drawn_with_its_verdict_and_the_command_that_does_it_again(tmp_path):
    page = tmp_path / "page.html"
    line = "live --from 3.1 --to native --members 2 --rate 20.0 --order b,a"
    line += " --session-timeout-ms 60000 --timeout 240.0"
    done = invoke(*line.split(), "--report", str(page))
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "<title>good: 3.1.2 to native, live, seed 0</title>" in text
    assert f"<code>rolling-bounce {line}</code>" in text
    assert "no partition ever had two owners" in text
    assert "rule: " in text
    settled = [line for line in done.stdout.splitlines() if "settled; tasks" in line]
    assert settled
    assert [line for line in settled if line not in text] == []
