"""No partition has no owner for longer than its bound, and the verdict names both."""

import re

import pytest

pytestmark = pytest.mark.timeout(900)


@pytest.mark.kip("268-20", "loop")
def test_members_that_stop_one_at_a_time_cost_a_rebalance_and_no_session(bounce):
    run = bounce("--from 3.1 --to native --client aiokafka")
    assert (run.status, run.failed()) == (0, [])
    numbers = run.numbers("pauses")
    longest = numbers["longest"]
    assert numbers["beyond"] == 0
    assert longest["terms_ms"]["session_ms"] == 0
    assert longest["pause_ms"] <= longest["bound_ms"]
    (sentence,) = [check["sentence"] for check in run.report["checks"] if check["name"] == "pauses"]
    assert f"{longest['partition']} paused for " in sentence
    # The numbers have a tenth of a millisecond, the sentence has none.
    bound = re.search(r"; its bound is (\d+) ms \(rebalance ", sentence)
    assert bound is not None
    assert abs(int(bound[1]) - longest["bound_ms"]) <= 0.6


@pytest.mark.kip("268-20", "loop")
def test_cooperative_members_pause_only_what_moves(bounce):
    run = bounce("--from native --to next --protocol cooperative")
    assert (run.status, run.failed()) == (0, [])
    assert run.numbers("pauses")["longest"]["terms_ms"]["session_ms"] == 0


@pytest.mark.kip("268-20", "loop")
def test_a_crash_costs_a_session_timeout_and_a_rebalance(bounce):
    run = bounce("--from native --to next --kill b --session-timeout-ms 6000")
    assert run.report["failure"] is None
    (check,) = [check for check in run.report["checks"] if check["name"] == "pauses"]
    assert check["ok"], check["sentence"]
    longest = check["numbers"]["longest"]
    assert longest["terms_ms"]["session_ms"] > 0
    assert 3_000 < longest["pause_ms"] <= longest["bound_ms"]
