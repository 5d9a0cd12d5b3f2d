"""The verdict of a rehearsed move, and which combinations of options are refused."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main
from system_tests.live.streams_move import Phase, verdict_of
from system_tests.live.streams_move.member_process import overlaps

OWNERS = {"0_0": "a", "0_1": "b"}
CLASSIC = Phase(
    protocol="classic", owners=OWNERS, described=OWNERS, group_type="classic", state="Stable"
)
STREAMS = Phase(
    protocol="streams",
    owners=OWNERS,
    described=OWNERS,
    group_type="streams",
    state="Stable",
    stopped_ms=1000,
    empty_ms=7100,
    started_ms=9000,
    running_ms=13_000,
    offsets_before={0: 5, 1: 6},
    offsets_kept={0: 5, 1: 6},
    predicted={0: 5, 1: 6},
    restored={0: 5, 1: 6},
)
BACK = replace(STREAMS, protocol="classic", group_type="classic", empty_ms=1500)


def judged(*phases, written=None, counted=None, streams_ms=0):
    records = {"0": 1, "1": 1}
    return verdict_of(
        phases or (CLASSIC, STREAMS, BACK),
        release="4.3.1",
        broker="4.3.1",
        written=records if written is None else written,
        counted=records if counted is None else counted,
        expiry_ms={"classic": 6000, "streams": streams_ms},
    )


def failed(verdict):
    return [check.name for check in verdict.checks if not check.ok]


def test_a_good_move_has_no_failed_check():
    verdict = judged()
    assert verdict.ok
    sentences = {check.sentence for check in verdict.checks}
    assert "classic to streams: 2 of 2 committed offsets are kept" in sentences
    assert "streams to classic: empty 0.5 s after the first stop; predicted immediately," in str(
        sentences
    )


def test_static_members_stay_in_a_streams_group_until_their_sessions_expire():
    back = replace(BACK, empty_ms=BACK.stopped_ms + 46_000, started_ms=60_000, running_ms=65_000)
    verdict = judged(CLASSIC, STREAMS, back, streams_ms=45_000)
    assert verdict.ok
    assert "predicted 45 s after the last heartbeat, when sessions expire" in str(verdict.checks)
    assert failed(judged(streams_ms=45_000)) == ["empty"]  # they left


def test_a_downtime_has_its_parts_what_was_predicted_of_each_and_the_bound():
    (found, _) = (check for check in judged().checks if check.name == "downtime")
    assert found.sentence == (
        "classic to streams: 12.0 s from the first stop until every task ran: 6.1 s until the"
        " group was empty (predicted 6 s), 1.9 s for the start of the JVMs (not predicted), 4.0 s"
        " until every task ran (predicted 3 s; FAIL from 63 s on)"
    )


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"offsets_kept": {0: 5, 1: 7}}, "offsets"),
        ({"offsets_before": {}, "offsets_kept": {}}, "offsets"),
        ({"restored": {0: 5, 1: 3}}, "restores"),
        ({"restored": {0: 5}}, "restores"),
        ({"restored": {0: 5, 1: 6, 2: 999}}, "restores"),
        ({"predicted": {}, "restored": {2: 999}}, "restores"),
        ({"predicted": {}, "restored": {}}, "restores"),
        ({"owners": {}, "described": {}}, "owners"),
        ({"described": {"0_0": "b", "0_1": "a"}}, "owners"),
        ({"overlaps": ("task 0_0 ran on a and b for 2000 ms",)}, "owners"),
        ({"state": "NotReady"}, "state"),
        ({"group_type": "classic"}, "state"),
        ({"failures": ("it died",)}, "members"),
        ({"empty_ms": 1500}, "empty"),
        ({"running_ms": 90_000}, "downtime"),
    ],
)
def test_every_rule_can_fail(change, name):
    assert failed(judged(CLASSIC, replace(STREAMS, **change), BACK)) == [name]


@pytest.mark.parametrize("counted", [{"0": 1}, {"0": 1, "1": 2}, {"0": 1, "1": 1, "2": 1}])
def test_records_are_counted_once(counted):
    assert failed(judged(counted=counted)) == ["records"]


def test_a_run_without_records_or_without_a_move_shows_nothing():
    assert failed(judged(written={}, counted={})) == ["records"]
    assert not judged(CLASSIC).ok


def test_streams_members_that_do_not_leave_are_noticed():
    assert failed(judged(CLASSIC, STREAMS, replace(BACK, empty_ms=40_000))) == ["empty"]


def test_two_owners_count_only_if_they_last_longer_than_a_report_lags():
    def report(at_ms, *active):
        return {"at_ms": at_ms, "active": list(active)}

    short = {"a": [report(0, "0_0"), report(1500)], "b": [report(1000, "0_0")]}
    assert list(overlaps(short)) == []
    long = {"a": [report(0, "0_0"), report(3000)], "b": [report(1000, "0_0")]}
    assert list(overlaps(long)) == ["task 0_0 ran on a and b for 2000 ms"]
    again = {"a": [report(0, "0_0"), report(10)], "b": [report(20, "0_0")]}
    assert list(overlaps(again)) == []


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("--from 4.3", 2, "start a real one with --broker kafka:4.4"),
        ("--from 4.3 --broker kafka:3.9", 1, "do not know the streams protocol"),
        ("--from 3.9 --broker kafka:4.3", 1, "bring them to 4.3 first"),
        ("--from 4.3 --broker kafka:4.3 --kill leader", 2, "has no use for --kill"),
        ("--from 4.3 --broker kafka:4.3 --offline", 2, "has no use for --offline"),
        ("--from 4.3 --broker kafka:4.4 --static", 1, "bring members and brokers to 4.4"),
        ("--from 4.3 --broker kafka:4.3 --report x.html", 2, "draws no report"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(words, status, sentence):
    done = CliRunner().invoke(main, ["live", "--to", "streams", *words.split()])
    assert done.exit_code == status
    assert sentence in done.stderr
