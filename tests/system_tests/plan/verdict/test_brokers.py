"""What brokers of a release are for the members of a path; facts of Kafka's upgrade notes."""

import json

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main

SUFFICE = "suffice for members of"
OLD = "do not suffice: members need brokers of 2.1 or later: old versions of requests are removed"
V2 = "do not suffice: exactly_once_v2 and exactly_once_beta need brokers of 2.5 or later"
V1 = "do not suffice: exactly-once needs brokers of 0.11.0 or later"
STATIC = "do not suffice: static members need brokers of 2.3 or later"
REFUSED = "refuse members of 2.0.1: brokers of 4.0 and later accept members of 2.1 and later only"
FIRST = "upgrade the brokers to {} or later first"
NOW = FIRST + ", or correct --brokers: members of {} need them already"
OR_V1 = FIRST + "; if members run exactly_once, plan with --uses eos-v1"


def plan(words):
    return CliRunner().invoke(main, ["plan", *words.split(), "--no-costs"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("3.9 --to 4.4 --brokers 3.9", f"3.9.2: {SUFFICE} 4.4.0; 2.1.0 or later is needed"),
        ("3.9 --to 4.4 --brokers 2.1.0", f"2.1.0: {SUFFICE} 4.4.0; 2.1.0 or later is needed"),
        ("4.4 --to 3.9 --brokers 4.4", f"4.4.0: {SUFFICE} 3.9.2; 2.1.0 or later is needed"),
        (
            "2.3.1 --to 4.4 --uses eos-v1 --brokers 2.5.0",
            f"2.5.0: {SUFFICE} 3.9.2 and 4.4.0; 2.5.0 or later is needed",
        ),
        ("2.8 --to 3.9 --brokers 2.0", f"2.0.1: {SUFFICE} 3.9.2; 0.11.0.0 or later is needed"),
        (
            "2.8 --to 3.9 --uses eos-v1 --brokers 2.0",
            f"2.0.1: {SUFFICE} 3.9.2; 0.11.0.0 or later is needed",
        ),
        (
            "2.3.1 --to 3.9 --uses eos --brokers 2.3",
            f"2.3.1: {SUFFICE} 3.9.2; 0.11.0.0 or later is needed",
        ),
        (
            "2.8 --to 3.9 --uses eos-v2,static --brokers 2.5",
            f"2.5.1: {SUFFICE} 3.9.2; 2.5.0 or later is needed",
        ),
    ],
)
def test_brokers_that_suffice_are_named_and_their_rows_left_out(words, line):
    done = plan(f"--from {words}")
    assert done.exit_code == 0
    assert f"  brokers {line}\n" in done.stdout
    assert "members need brokers of 2.1 or later" not in done.stdout
    assert "exactly_once_v2 needs brokers" not in done.stdout


@pytest.mark.parametrize(
    ("words", "problem", "way_out"),
    [
        ("3.9 --to 4.4 --brokers 2.0", OLD, FIRST.format("2.1.0")),
        ("2.3.1 --to 4.4 --uses eos-v1 --brokers 2.4", V2, FIRST.format("2.5.0")),
        ("2.3.1 --to 4.4 --uses eos --brokers 2.4", V2, FIRST.format("2.5.0")),
        (
            "2.8.1 --to 3.5.0 --uses ktable,iq,eos-v2 --brokers 2.1.0",
            V2,
            NOW.format("2.5.0", "2.8.1"),
        ),
        ("2.8 --to 4.0 --uses eos-v2 --brokers 2.3.0", V2, NOW.format("2.5.0", "2.8.2")),
        ("3.5 --to 3.9 --uses eos --brokers 2.3.0", V2, OR_V1.format("2.5.0")),
        (
            "1.0.2 --to 2.0 --uses eos-v1 --brokers 0.10.2.1",
            V1,
            NOW.format("0.11.0.0", "1.0.2"),
        ),
        ("2.4.1 --to 3.5 --uses static --brokers 2.1", STATIC, NOW.format("2.3.0", "2.4.1")),
        ("2.2 --to 2.0 --brokers 4.0", REFUSED, "plan with --to 2.1.0 or a later release"),
        (
            "2.0 --to 2.2 --brokers 4.4",
            REFUSED,
            "correct --brokers: members of 2.0.1 cannot run with these now",
        ),
    ],
)
def test_brokers_that_members_cannot_use_are_a_no_go_with_a_way_out(words, problem, way_out):
    done = plan(f"--from {words}")
    assert done.exit_code == 1
    _, verdict, out, *_ = done.stdout.splitlines()
    assert "members cannot use the brokers" in verdict
    assert out == f"  way out: {way_out}"
    assert f": {problem}\n" in done.stdout


def test_the_check_of_the_cluster_concerns_brokers_of_4_4_and_the_rehearsal_has_the_given_ones():
    check, broker = "metadata.cluster.check.enable=false", "--broker kafka:"
    for brokers, has_check, kafka in (("4.4", True, "4.4.0"), ("3.9", False, "3.9.2")):
        shown = plan(f"--from 3.9 --to 4.4 --brokers {brokers}").stdout
        assert (check in shown) is has_check
        assert f"{broker}{kafka}\n" in shown
        assert "RELEASE is that of your brokers" not in shown
    old = plan("--from 3.9 --to 4.4 --brokers 2.8").stdout
    assert f"{broker}3.3\n" in old
    assert "  - brokers below 3.3, which need ZooKeeper" in old
    assert check in plan("--from 3.9 --to 4.4").stdout


def test_what_only_concerns_older_brokers_is_left_out_with_newer_ones():
    row = "the default -1 of replication.factor needs brokers of 2.4 or later"
    for brokers, has_row in (("", True), (" --brokers 2.3", True), (" --brokers 2.4", False)):
        shown = plan(f"--from 2.8 --to 3.9{brokers}").stdout
        assert (row in shown) is has_row
        assert "replication.factor of internal topics is -1" in shown


def test_wrong_brokers_end_with_2_and_json_names_the_given_ones():
    for name in ("native", "9.9", "x"):
        assert plan(f"--from 3.9 --to 4.4 --brokers {name}").exit_code == 2
    document = json.loads(plan("--from 3.9 --to 4.4 --brokers 3.9 --format json").stdout)
    assert document["brokers"] == "3.9.2"
