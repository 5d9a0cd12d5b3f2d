"""A short soak, run to its end and ended early."""

import json
import signal

import pytest

from system_tests.scenarios.conftest import run_command
from system_tests.soak.journal import Journal

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]
# This seed begins with a bounce, lost answers while a member restarts, and a bounce; and the
# session is long, so that no member loses it on a machine that stalls.
_SOAK = "--members 3 --seed 607 --session-timeout-ms 60000 --timeout 240"


def events(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_short_soak_on_both_clients_loses_nothing(tmp_path):
    out = tmp_path / "soak.jsonl"
    run = run_command(f"soak {_SOAK} --minutes 0.1 --rate 50 --client mixed --calm 0.5 --out {out}")
    report = run.report
    assert (run.status, report["findings"]) == (0, [])
    assert run.numbers("records")["missing"] == 0
    assert run.numbers("records")["produced"] > 0
    assert report["ended_early"] is None
    assert report["disturbances"]["rolling bounce"]["recovery_s"]["count"] >= 1
    written = events(out)
    assert [written[0]["event"], written[-1]["event"]] == ["began", "verdict"]
    seen = {name for event in written if event["event"] == "gauges" for name in event["processes"]}
    assert seen == {"soak with its broker", "member a", "member b"}
    begun = [event["number"] for event in written if event["event"] == "disturbance"]
    assert [event["number"] for event in written if event["event"] == "settled"] == begun


@pytest.mark.usefixtures("alone")
def test_an_interrupt_ends_a_soak_early_with_the_verdict_so_far(tmp_path, monkeypatch):
    out, write = tmp_path / "soak.jsonl", Journal.write

    def interrupt_once_settled(journal, event, **fields):
        write(journal, event, **fields)
        if event == "settled":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Journal, "write", interrupt_once_settled)
    run = run_command(f"soak {_SOAK} --minutes 60 --rate 50 --out {out}")
    assert run.status == 0
    assert run.report["ended_early"] == "it was interrupted"
    assert run.report["ok"]
    assert events(out)[-1]["event"] == "verdict"
