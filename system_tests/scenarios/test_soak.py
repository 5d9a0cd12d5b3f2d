"""A short soak, run to its end and ended early."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

COMMAND = (sys.executable, "-m", "system_tests.entry", "soak", "--format", "json")
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]
_LIMIT_S = 600


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_short_soak_on_both_clients_loses_nothing(tmp_path):
    out = tmp_path / "soak.jsonl"
    # This seed begins with a bounce, lost answers while a member restarts, and a bounce; and the
    # session is long, so that no member loses it on a machine that stalls.
    asked = f"--minutes 0.3 --members 3 --rate 100 --client mixed --calm 0.5 --seed 607 --out {out}"
    asked += " --session-timeout-ms 10000"
    done = subprocess.run(
        [*COMMAND, *asked.split()], capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"]) == (0, [])
    numbers = {check["name"]: check["numbers"] for check in report["checks"]}
    assert numbers["records"]["missing"] == 0
    assert numbers["records"]["produced"] > 1000
    assert report["ended_early"] is None
    assert report["disturbances"]["rolling bounce"]["recovery_s"]["count"] >= 1
    written = events(out)
    assert [written[0]["event"], written[-1]["event"]] == ["began", "verdict"]
    seen = {name for event in written if event["event"] == "gauges" for name in event["processes"]}
    assert seen == {"soak with its broker", "member a", "member b"}
    begun = [event["number"] for event in written if event["event"] == "disturbance"]
    assert [event["number"] for event in written if event["event"] == "settled"] == begun


def test_an_interrupt_ends_a_soak_early_with_the_verdict_so_far(tmp_path):
    out = tmp_path / "soak.jsonl"
    asked = f"--minutes 60 --members 3 --rate 50 --seed 607 --session-timeout-ms 10000 --out {out}"
    with subprocess.Popen(
        [*COMMAND, *asked.split()], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            deadline = time.monotonic() + _LIMIT_S / 2
            while not (out.exists() and '"settled"' in out.read_text()):
                assert time.monotonic() < deadline, "nothing was ever disturbed"
                time.sleep(0.2)
            os.kill(process.pid, signal.SIGINT)
            report = json.loads(process.communicate(timeout=_LIMIT_S / 2)[0])
        finally:
            process.kill()
    assert process.returncode == 0
    assert report["ended_early"] == "it was interrupted"
    assert report["ok"]
    assert events(out)[-1]["event"] == "verdict"
