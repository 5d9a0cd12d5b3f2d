"""Plans of all groups of a file: one table, one page each, and what is wrong is named."""

import json
import os
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from assignor.inspection.group import inspect_group
from assignor.inspection.saved_problem import problem_of
from assignor.inspection.streams_groups.look import look_at_streams_group
from system_tests.cli.main import main
from tests.assignor.inspection import streams_groups
from tests.assignor.inspection.described_groups import captured, group_of


@pytest.fixture
def fleet(tmp_path):
    """A file of groups: name -> a captured group."""

    def save(**groups):
        file = tmp_path / "groups.jsonl"
        lines = [
            json.dumps(problem_of(looked_at(kind)) | {"name": name})
            for name, kind in groups.items()
        ]
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return file

    return save


def looked_at(kind):
    """Return a look at a captured group, or at one of the streams protocol."""
    if kind != "streams":
        return inspect_group(*captured(kind))
    everything = streams_groups.member("a", streams_groups.ALL)
    return look_at_streams_group(streams_groups.group(everything), streams_groups.facts())


def plan_all(*words):
    return CliRunner().invoke(main, ["plan", "--all", *map(str, words)])


def rows_of(done):
    return {row["group_id"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_each_group_has_a_row_and_a_page(fleet, tmp_path):
    file = fleet(orders="two-3.9.1", **{"a/b": "two-3.9.1"})
    pages = tmp_path / "pages"
    words = ("--problem", file, "--from", "3.9.1", "--to", "4.3", "--seeds", 1)
    done = plan_all(*words, "--report", pages)
    assert done.exit_code == 0, done.output
    heads, orders, _, *rest = done.stdout.splitlines()
    assert heads.split()[:4] == ["group", "from", "to", "verdict"]
    assert orders.split()[:3] == ["orders", "3.9.1", "4.3.1"]
    assert "2 groups: 0 red, 2 to go" in rest
    assert sorted(page.name for page in pages.iterdir()) == ["a%2Fb-c14cddc0.html", "orders.html"]
    found = rows_of(plan_all(*words, "--format", "json"))
    assert found["orders"]["steps"][0]["cost"]["seeds"] == 1
    assert plan_all("--problem", file.parent, *words[2:]).stdout == done.stdout


def test_pages_are_named_by_group_and_those_of_other_groups_are_refused(fleet, tmp_path):
    pages = tmp_path / "pages"
    words = ("--from", "3.9.1", "--to", "4.3", "--no-costs", "--report", pages)

    def names():
        return sorted(page.name for page in pages.iterdir())

    assert plan_all("--problem", fleet(b="two-3.9.1", c="two-3.9.1"), *words).exit_code == 0
    assert plan_all("--problem", fleet(c="two-3.9.1", b="two-3.9.1"), *words).exit_code == 0
    assert names() == ["b.html", "c.html"]
    done = plan_all("--problem", fleet(a="two-3.9.1", b="two-3.9.1"), *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "has pages of none of these groups: c.html; they would be read as" in done.stderr
    assert names() == ["b.html", "c.html"]
    (pages / "notes.txt").write_text("", encoding="utf-8")
    file = fleet(b="old-2.3.1", c="two-3.9.1", B="two-3.9.1", **{"x" * 200: "two-3.9.1"})
    assert plan_all("--problem", file, *words).exit_code == 1
    assert "no plan" in (pages / "b.html").read_text(encoding="utf-8")  # it was a go before
    assert "members of the group differ" in (pages / "b.html").read_text(encoding="utf-8")
    assert len({name.lower() for name in names()}) == 5
    assert max(map(len, names())) < 120


def test_groups_of_one_name_are_one_plan_and_an_error(fleet, tmp_path):
    first = fleet(orders="two-3.9.1")
    (tmp_path / "zone-2.jsonl").write_bytes(first.read_bytes())
    words = ("--from", "3.9.1", "--to", "4.3", "--no-costs", "--format", "json")
    done = plan_all("--problem", tmp_path, *words)
    assert done.exit_code == 1
    found = rows_of(done)
    assert not found["orders"]["is_red"]
    other = found["orders (zone-2.jsonl:1)"]
    assert "group orders is also in groups.jsonl:1" in other["verdict"]


def test_a_reset_names_the_groups_whose_topics_it_could_delete(fleet):
    file = fleet(app="two-3.9.1", apple="two-3.9.1", **{"app-2": "natives"})
    words = ("--problem", file, "--from", "3.9.1", "--to", "3.2", "--no-costs", "--format", "json")
    found = rows_of(plan_all(*words, "--uses", "fk-join"))
    lines = {name: found[name]["steps"][-1].get("demands", []) for name in ("app", "apple")}
    assert any("begins with app-, here app-2; assignor reset" in line for line in lines["app"])
    assert any("begins with apple-; assignor reset" in line for line in lines["apple"])


def test_one_red_group_decides_the_exit_status(fleet):
    file = fleet(orders="two-3.9.1", native="natives")
    words = ("--to", "4.3", "--no-costs", "--format", "json")
    assert plan_all("--problem", file, *words).exit_code == 0
    (file.parent / "other.jsonl").write_text("{}", encoding="utf-8")
    done = plan_all("--problem", file.parent, *words)
    assert done.exit_code == 1
    found = rows_of(done)
    assert found["other.jsonl:1"]["is_red"]
    assert (found["orders"]["from"], found["orders"]["is_red"]) == ("3.4.0", False)
    assert any("planned from 3.4.0, the oldest" in line for line in found["orders"]["unknowns"])
    assert found["native"]["from"] == "native"
    assert not found["native"]["is_red"]


def test_from_is_the_release_only_where_the_file_does_not_tell_it(fleet):
    file = fleet(orders="two-3.9.1", native="natives")
    words = ("--to", "4.3", "--from", "3.9.1", "--no-costs", "--format", "json")
    found = rows_of(plan_all("--problem", file, *words))
    assert {name: row["from"] for name, row in found.items()} == {
        "orders": "3.9.1",
        "native": "native",
    }


def test_streams_groups_have_their_plan_in_the_same_table(fleet, tmp_path):
    file = fleet(orders="two-3.9.1", counts="streams")
    words = ("--problem", file, "--from", "4.2", "--to", "4.4", "--no-costs")
    without = rows_of(plan_all(*words, "--format", "json"))
    assert "give --from RELEASE and --brokers RELEASE" in without["counts"]["verdict"]
    pages = tmp_path / "pages"
    done = plan_all(*words, "--brokers", "4.4", "--report", pages)
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("counts")]
    assert "one rolling bounce" in row
    assert "counts" in (pages / "counts.html").read_text(encoding="utf-8")
    found = rows_of(plan_all(*words, "--brokers", "4.4", "--format", "json"))["counts"]
    assert (found["from"], found["is_red"], len(found["steps"])) == ("4.2.2", False, 1)


def test_all_groups_move_to_the_streams_protocol_but_those_that_have(fleet):
    file = fleet(orders="two-3.9.1", counts="streams")
    words = ("--problem", file, "--to", "streams", "--brokers", "4.3", "--format", "json")
    found = rows_of(plan_all(*words, "--from", "3.9.1"))
    assert "no go: members of 3.9.1" in found["orders"]["verdict"]
    assert found["counts"]["verdict"] == "nothing to do, it is a streams group"
    assert plan_all(*words).exit_code == 1


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("--from 4.2 --to 4.3 --brokers 4.3", 0, "a streams group (KIP-1071), brokers 4.3.1"),
        ("--from 4.2 --to 4.3 --brokers 4.3 --no-costs", 0, "(KIP-1071), brokers 4.3.1"),
        ("--to 4.3", 2, "give --from RELEASE and --brokers RELEASE"),
        ("--from 4.3 --to streams --brokers 4.3", 2, "group g is a streams group already"),
    ],
)
def test_a_live_streams_group_needs_no_file(monkeypatch, words, status, sentence):
    monkeypatch.setattr("assignor.adapters.admin.look_at_group", lambda *_: looked_at("streams"))
    monkeypatch.setattr("assignor.adapters.admin.list_groups", lambda _: [])
    monkeypatch.setattr("system_tests.cli.planned_group.connected", lambda _: nullcontext())
    live = ("--bootstrap-server", "localhost:1", "--group", "g")
    done = CliRunner().invoke(main, ["plan", *words.split(), *live])
    assert done.exit_code == status
    assert sentence in done.output


def test_a_live_group_without_members_is_refused_with_what_to_do(monkeypatch):
    empty = inspect_group(group_of(state="Empty", protocol_name=""))
    monkeypatch.setattr("assignor.adapters.admin.look_at_group", lambda *_: empty)
    monkeypatch.setattr("assignor.adapters.admin.list_groups", lambda _: [])
    monkeypatch.setattr("system_tests.cli.planned_group.connected", lambda _: nullcontext())
    words = ("--bootstrap-server", "localhost:1", "--group", "app", "--to", "4.3")
    done = CliRunner().invoke(main, ["plan", *words])
    assert done.exit_code == 1
    assert "its state is Empty: start it, or plan without --group, with --from" in done.stderr


def test_a_bad_line_is_a_row_with_its_error(fleet):
    file = fleet(orders="two-3.9.1")
    with file.open("a", encoding="utf-8") as lines:
        lines.write('{"name": "shop", "clients": 3}\n')
    (file.parent / "other.json").write_text("{", encoding="utf-8")
    words = ("--to", "4.3", "--from", "3.9.1", "--no-costs", "--format", "json")
    done = plan_all("--problem", file.parent, *words)
    assert done.exit_code == 1
    found = rows_of(done)
    assert not found["orders"]["is_red"]
    assert f"{file}: line 2, group shop: clients" in found["shop"]["verdict"]
    assert "line 1, column 2: broken JSON" in found["other.json:1"]["verdict"]


def test_a_release_is_given_to_the_groups_that_it_fits_and_errors_are_below_the_table(fleet):
    file = fleet(orders="two-3.9.1", users="two-3.9.1", mixed="old-2.3.1", other="old-2.3.1")
    words = ("--problem", file, "--to", "4.3", "--no-costs")
    found = rows_of(plan_all(*words, "--from", "2.8.2", "--format", "json"))
    assert [found[name]["from"] for name in ("orders", "users")] == ["3.4.0", "3.4.0"]
    assert any("planned from 3.4.0, the oldest" in line for line in found["orders"]["unknowns"])
    text = plan_all(*words, "--from", "3.9.1").stdout
    assert text.count("no plan, see below") == 2
    assert text.count("  - mixed, other: ") == 1
    assert text.count(" 3.9.1  4.3.1 ") == 2


def test_why_a_group_is_no_go_and_what_to_do_is_below_the_table(tmp_path):
    file = tmp_path / "groups.jsonl"
    lines = [
        {
            "name": name,
            "topics": {"t": {"partitions": 1}, "u": {"partitions": 1}},
            "subtopologies": {"0": {"sources": ["t"]}, "1": {"sources": ["u"]}},
            "clients": {"a": {"active": ["0_0", "1_0"], "versions": [{"releases": [release]}]}},
        }
        for name, release in (("old", "2.3.0"), ("new", "3.2.3"))
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    words = ("--problem", file, "--to", "3.9", "--no-costs", "--uses-of", "new", "fk-join")
    text = plan_all(*words).stdout
    below = text.partition("no plan, or no go:")[2].partition("unknown:")[0]
    assert "  - old: !! while a member of 3.9.2 joins, a leader of 2.3.0" in below
    assert "bounce to 2.3.1 first" in below
    assert "  - new: foreign-key join subscriptions (KAFKA-13769)" in below
    assert text.count("see below") == 2
    assert "all groups" not in plan_all("--problem", file, "--to", "3.9", "--no-costs").stderr
    found = rows_of(plan_all(*words, "--format", "json"))
    assert found["old"]["verdict"] == "no go: members can die"
    assert found["old"]["reasons"][0].startswith("!! while a member of 3.9.2")


def test_each_group_has_uses_of_its_own_and_a_rollback_is_called_one(fleet):
    file = fleet(orders="two-3.9.1", users="two-3.9.1")
    words = ("--problem", file, "--from", "3.9.1", "--to", "3.4", "--no-costs")
    own = ("--uses-of", "users", "ktable")
    found = rows_of(plan_all(*words, *own, "--format", "json"))
    assert [len(found[name]["steps"]) for name in ("orders", "users")] == [1, 2]
    done = plan_all(*words, *own)
    assert "2 groups: 0 red, 2 to go, of them 2 rollbacks" in done.stdout
    assert "a rollback, as 3.4.1 is older than 3.9.1" in found["orders"]["verdict"]
    twice = plan_all(*words, *own, "--uses-of", "users", "eos")
    assert twice.exit_code == 2
    assert "--uses-of names ['users'] more than once; give all features" in twice.stderr
    refused = plan_all(*words, "--uses-of", "nobody", "ktable")
    assert refused.exit_code == 2
    assert "'nobody'" in refused.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--to 4.3", "--bootstrap-server"),
        ("--to streams --problem .", "give the release of the brokers"),
        ("--to streams --problem . --brokers 4.3 --seeds 2", "leave out --seeds"),
        ("--to 4.3 --problem . --streams-version 1", "--streams-version needs --to streams"),
        ("--to 4.3 --problem . --members 3", "leave out --members"),
        ("--to 4.3 --problem nosuch.jsonl", "nosuch.jsonl cannot be read"),
    ],
)
def test_wrong_fleets_are_refused(words, sentence):
    done = plan_all(*words.split())
    assert done.exit_code == 2
    assert sentence in done.stderr


def test_a_directory_is_no_report_of_one_group(tmp_path):
    words = ("--from", "3.9", "--to", "4.3", "--report", tmp_path)
    done = CliRunner().invoke(main, ["plan", *map(str, words)])
    assert done.exit_code == 2
    assert "is a directory; give a file" in done.stderr


def test_a_saved_group_may_come_through_a_pipe(fleet):
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "wb") as file:
            file.write(fleet(native="natives").read_bytes())
        words = ("plan", "--problem", f"/dev/fd/{reader}", "--to", "4.3", "--no-costs")
        done = CliRunner().invoke(main, words)
    finally:
        os.close(reader)
    assert done.exit_code == 0, done.output
    assert "4.3.1" in done.stdout


def test_only_files_of_a_directory_are_read_and_each_error_is_a_row(fleet, tmp_path):
    folder = tmp_path / "groups"
    folder.mkdir()
    fleet(orders="two-3.9.1").rename(folder / "good.jsonl")
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    done = plan_all("--problem", folder, "--to", "4.3")
    assert done.exit_code == 1
    for name in ("pipe.json", "zero.json"):
        assert f"{folder / name} cannot be read: it is no file" in done.stdout
    assert "1 red" not in done.stdout
    assert "3 groups: 2 red, 1 to go" in done.stdout


def test_a_page_that_is_a_link_overwrites_nothing(fleet, tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    file = fleet(orders="two-3.9.1")
    before = file.read_bytes()
    (pages / "orders.html").symlink_to(file)
    done = plan_all("--problem", tmp_path, "--to", "4.3", "--report", pages)
    assert done.exit_code == 2
    assert "orders.html is a link" in done.stderr
    assert file.read_bytes() == before
