"""`rolling-bounce live --to streams`: real JVM members move to the streams protocol and back."""

import json
import re

import pytest
from click.testing import CliRunner

from probing import NEWEST_KAFKA
from system_tests.cli.main import main

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("switches", "session_ms"),
    [
        pytest.param("", 0, id="dynamic"),
        pytest.param(
            "--static",
            45_000,
            id="static",
            marks=pytest.mark.nightly("waits 45 s for sessions of a streams group"),
        ),
    ],
)
def test_a_group_moves_there_and_back(switches, session_ms):
    words = (
        f"live --from {NEWEST_KAFKA} --to streams --broker kafka:{NEWEST_KAFKA}"
        f" --members 2 --partitions 4 --rate 50 {switches}"
    )
    done = CliRunner().invoke(main, [*words.split(), "--format", "json"])
    report = json.loads(done.stdout)
    # How long the moves last is the machine's business.
    timed = {"empty", "downtime"}
    assert [c for c in report["checks"] if not c["ok"] and c["name"] not in timed] == []
    address, command = done.stderr.splitlines()[:2]
    release, group = re.escape(NEWEST_KAFKA), "group rolling-bounce-move, topic words"
    servers = re.fullmatch(rf"broker {release} at (127\.0\.0\.1:\d+), {group}", address)
    assert servers is not None, address
    assert f"--bootstrap-server {servers[1]} --group rolling-bounce-move" in command
    assert [phase["group_type"] for phase in report["phases"]] == ["classic", "streams", "classic"]
    moved, returned = report["phases"][1:]
    # Stores are in memory: all state is restored, there and back.
    assert sum(moved["restored"].values()) > 0
    assert sum(returned["restored"].values()) > sum(moved["restored"].values())
    # Classic members stay until their sessions have expired.
    assert moved["empty_ms"] - moved["stopped_ms"] > 3000
    # Static members stay until their last heartbeat, 5 s ago at most, is a session ago.
    assert returned["empty_ms"] - returned["stopped_ms"] >= session_ms - 6000
