import json

import pytest
from click.testing import CliRunner

from assignor.cli import main
from assignor.cli.negotiate import command as negotiate
from tests.versions import LATER, NEWEST


def run(*arguments):
    return CliRunner().invoke(main, ["negotiate", *arguments])


def run_json(*arguments):
    result = run(*arguments, "--format", "json")
    return result.exit_code, json.loads(result.output)


def test_two_members_of_different_versions_get_one_decision_and_its_reason():
    result = run("--members", "10/11,11/11")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert (
        lines[0]
        == f"leader: release native, latest version {NEWEST} and native version 101, model: native"
    )
    assert "answer: version 10, commonly supported version 11, future members none" in lines[1]
    rows = [line.split() for line in lines if line.startswith("m") and ":" not in line]
    assert rows == [
        ["member", "used", "supported", "answer", "common", "content", "next"],
        ["m1", "10", "11", "10", "11", "normal", "rejoin", "11"],
        ["m2", "11", "11", "10", "11", "normal", "rejoin", "11"],
    ]
    assert "m1: every member is upgraded: " in result.output
    assert "m2: others still write lower: " in result.output


def test_columns_are_aligned_and_no_line_is_longer_than_100():
    names = ",".join(f"instance-{n:02}:{n}/11" for n in range(3, 12))
    result = run("--members", names, "--release", "2.3", "--until-settled")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 100
    header = next(line for line in lines if line.startswith("member"))
    column = header.index("content")
    rows = [line for line in lines if line.startswith("instance-") and ": " not in line]
    assert rows
    assert {row[column:].split()[0] for row in rows} == {"empty", "previous", "normal"}


def test_the_json_names_the_leader_the_versions_and_what_a_member_does():
    status, found = run_json("--members", f"11/11,{LATER}/{LATER}")
    assert status == 0
    assert found["leader"] == {
        "release": "native",
        "latest": NEWEST,
        "native": 101,
        "model": "native",
    }
    assert (found["version"], found["commonly_supported"]) == (11, 11)
    assert found["future_members"] == ["m2"]
    assert found["members"][1]["answer"]["version"] == 11
    assert found["members"][1]["next"] == {"action": "rejoin", "version": 11}
    assert "rounds" not in found


def test_until_settled_plays_every_round():
    status, found = run_json(
        "--members", "old:9/9,new:11/11", "--release", "2.8", "--until-settled"
    )
    assert status == 0
    assert found["settled"] is True
    actions = [[m["next"]["action"] for m in r["members"]] for r in found["rounds"]]
    assert actions == [["keep", "rejoin"], ["keep", "keep"]]


def test_rounds_stops_when_settled_or_when_the_rounds_are_over():
    assert len(run_json("--members", "9/9,11/11", "--rounds", "1")[1]["rounds"]) == 1
    status, found = run_json("--members", "9/11,11/11", "--rounds", "1")
    assert (status, found["settled"]) == (0, False)
    assert len(run_json("--members", "9/9,11/11", "--rounds", "50")[1]["rounds"]) == 2


def test_the_leaders_release_makes_the_difference():
    contents = {
        release: [
            m["answer"]["content"]
            for m in run_json("--members", "3/3,11/11", "--release", release)[1]["members"]
        ]
        for release in ("2.0.1", "2.4", "2.6")
    }
    assert contents == {
        "2.0.1": ["previous", "empty"],
        "2.4": ["previous", "normal"],
        "2.6": ["normal", "normal"],
    }


def test_members_are_shown_in_the_order_in_which_they_were_given():
    members = ",".join(["11/11"] * 12)
    _, found = run_json("--members", members)
    assert [m["member"] for m in found["members"]] == [f"m{n}" for n in range(1, 13)]


def test_a_leader_that_ends_is_exit_status_1():
    result = run("--members", "2/2,3/3", "--release", "0.10.2")
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert "the leader fails: unable to decode subscription data: version=3" in text
    assert "set upgrade.from=0.10.2" in text
    status, found = run_json("--members", "2/2,3/3", "--release", "0.10.2")
    assert status == 1
    assert found["version"] is None
    assert found["members"] == []
    assert "version=3" in found["leader_dies"]


def test_a_member_that_stops_is_exit_status_1():
    status, found = run_json("--members", f"2/2,{LATER}/{LATER}", "--release", "3.9")
    assert status == 1
    assert found["error_code"] == 3
    assert {m["next"]["action"] for m in found["members"]} == {"stop"}
    assert (
        "error 3 to all members"
        in run("--members", f"2/2,{LATER}/{LATER}", "--release", "3.9").output
    )


def test_a_pinned_member_shows_no_second_number():
    result = run("--members", "2/11,11/11")
    assert result.exit_code == 0
    assert "commonly supported version -" in result.output


def test_a_group_that_has_not_settled_in_time_is_exit_status_1(monkeypatch):
    monkeypatch.setattr(negotiate, "ROUNDS_MAX", 1)
    result = run("--members", "9/9,11/11", "--until-settled")
    assert result.exit_code == 1
    assert "has not settled after 1 rounds" in result.output
    assert run_json("--members", "9/9,11/11", "--until-settled")[0] == 1


def test_on_a_terminal_there_is_a_table(monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "160")):
        monkeypatch.setenv(name, value)
    result = run("--members", "10/11,11/11")
    assert result.exit_code == 0
    assert "supported" in result.output
    assert "│" in result.output


def test_a_native_member_beside_a_jvm_gets_the_version_to_write_and_does_not_rejoin():
    result = run("--members", "jvm:9/9,n:11/11+101,two:101/101")
    assert result.exit_code == 0
    assert "native members write version 9 next: as far as the JVM members go" in result.output
    assert "rejoining: none" in result.output
    rows = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "member used supported native answer common content requested next" in rows
    assert f"n 11 11 101 11 {NEWEST} normal 9 write next time 9" in rows
    assert "two 101 101 101 101 101 normal 9 write next time 9" in rows
    assert "jvm 9 9 - 9 9 normal - keep 9" in rows


def test_natives_go_as_far_as_all_of_them_read_and_no_further_than_the_level():
    for level, expected in ((None, 101), (101, 101), (50, NEWEST), (11, 11), (9, 9), (1, 3)):
        arguments = () if level is None else ("--level", str(level))
        status, found = run_json("--members", "11/11+102,101/101,102/102", *arguments)
        assert (status, found["next_version"]) == (0, expected)
        assert found["rejoining"] == []


def test_a_member_that_cannot_be_read_rejoins_once():
    status, found = run_json("--members", "101/101,new:103/103", "--until-settled")
    assert status == 0
    assert [r["rejoining"] for r in found["rounds"]] == [["new"], []]
    (unread,) = [m for m in found["rounds"][0]["members"] if m["member"] == "new"]
    assert unread["answer"]["subscription_read"] is False
    assert unread["answer"]["version"] == 101
    assert "blind" in run("--members", "101/101,new:103/103").output
    _, read = run_json("--members", "101/101,new:103/103", "--release", "incompatible")
    assert read["rejoining"] == []


def test_to_a_jvm_leader_a_native_member_is_like_any_other():
    _, found = run_json("--members", "11/11,101/101", "--release", "3.9.1", "--until-settled")
    assert [r["rejoining"] for r in found["rounds"]] == [["m2"], []]
    assert found["rounds"][1]["members"][1]["used"] == 11
    assert found["next_version"] is None


def test_a_native_member_that_writes_2_is_pinned_and_keeps_its_pin():
    _, found = run_json("--members", "pinned:2/11+101,free:101/101")
    assert [m["answer"]["next_version"] for m in found["members"]] == [2, 101]
    assert found["members"][0]["rule"] == "pin stays"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--members", "11/10"], "m1 writes version 11 but supports only 10"),
        (["--members", "0/3"], "versions go from 1"),
        (["--members", "1/2147483648"], "versions go from 1"),
        (["--members", "a:1/1,a:2/2"], "two members have the name a"),
        (["--members", ""], "write used/supported"),
        (["--members", "11"], "write used/supported"),
        (["--members", "11/11+"], "write used/supported"),
        (["--members", "11/11+100"], "a trailer has a native version (101 or above)"),
        (["--members", f"{LATER}/{LATER}+101"], f"follows versions up to {NEWEST}"),
        (["--members", "101/101+101"], f"follows versions up to {NEWEST}"),
        (["--members", "11/11+2147483648"], "versions go from 1"),
        (["--members", "11/11,"], "member 2 is ''"),
        (["--members", "-1/3"], "write used/supported"),
        (["--members", "1²/13"], "write used/supported"),
        (
            ["--members", "11/11", "--release", "2.3.9"],
            "the newest patch of 2.3 recorded here is 2.3.1",
        ),
        (["--members", "11/11", "--rounds", "2", "--until-settled"], "exclude each other"),
    ],
)
def test_invalid_input_is_one_sentence_and_exit_status_2(arguments, sentence):
    result = run(*arguments)
    assert result.exit_code == 2
    assert sentence in result.output
    assert len(result.output.strip().splitlines()) == 1
