"""A saved group as the start of a plan."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from assignor.inspection.group import inspect_group
from assignor.inspection.saved_problem import problem_of
from system_tests.cli.main import main
from tests.assignor.inspection.described_groups import captured
from tests.versions import LAST_WITH_11


@pytest.fixture
def saved(tmp_path):
    def save(name, **changes):
        file = tmp_path / f"{name}.json"
        file.write_text(
            json.dumps(problem_of(inspect_group(*captured(name))) | changes), encoding="utf-8"
        )
        return file

    return save


def plan(*words):
    return CliRunner().invoke(main, ["plan", *map(str, words), *_seeds(words), "--format", "json"])


def _seeds(words):
    return () if "--no-costs" in words else ("--seeds", "2")


def test_members_threads_tasks_state_and_release_come_from_the_file(saved):
    file = saved("natives")
    made = json.loads(plan("--problem", file, "--to", "next").stdout)
    records = json.loads(file.read_text(encoding="utf-8"))["end_offset_sums"]
    group = made["group"]
    assert made["from"] == "native"
    assert (group["members"], group["threads"], group["partitions"]) == (3, 1, 8)
    assert sum(group["sizes"]) == sum(records.values()) > 0
    assert group["session_timeout_ms"] is None


def test_options_win_over_the_file(saved):
    words = ("--members", 5, "--partitions", 2, "--threads", 2, "--restore-rate", 2000)
    made = plan("--problem", saved("natives"), "--to", "next", *words).output
    group = json.loads(made)["group"]
    assert (group["members"], group["partitions"], group["threads"]) == (5, 2, 2)
    assert group["restore"] == 2000
    assert len(group["sizes"]) == 2


def test_if_several_releases_match_one_has_to_be_given(saved):
    file = saved("two-3.9.1")
    done = plan("--problem", file, "--to", "4.1")
    assert done.exit_code == 2
    match = f"members of the group match 3.4.0 to {LAST_WITH_11}; name the release"
    assert match in done.stderr
    assert json.loads(plan("--problem", file, "--from", "3.9.1", "--to", "4.1").stdout)["rolling"]


def test_a_release_that_members_do_not_run_is_refused(saved):
    done = plan("--problem", saved("two-3.9.1"), "--from", "2.3.1", "--to", "4.1")
    assert done.exit_code == 2
    assert "jvm0, jvm1 of the group do not run 2.3.1" in done.stderr
    assert f"that of 3.4.0 to {LAST_WITH_11}" in done.stderr


def test_a_group_of_several_releases_is_refused(saved):
    done = plan("--problem", saved("old-2.3.1"), "--to", "2.8")
    assert done.exit_code == 2
    assert "members of the group differ: " in done.stderr
    assert "old has metadata of 2.1.0 to 2.3.1, jvm1 has metadata of" in done.stderr
    assert "bring all members to one release first" in done.stderr


@pytest.fixture
def halfway(tmp_path):
    def save(**releases):
        clients = {name: {"versions": [{"releases": own}]} for name, own in releases.items()}
        clients["a"]["active"] = ["0_0"]
        file = tmp_path / "halfway.json"
        parts = {"topics": {"t": {"partitions": 1}}, "subtopologies": {"0": {"sources": ["t"]}}}
        file.write_text(json.dumps({"name": "g", "clients": clients, **parts}), encoding="utf-8")
        return file

    return save


@pytest.mark.parametrize(
    ("new", "old", "step", "done"),
    [("3.9", "2.3.1", 1, "b, c"), ("4.3", "2.3.1", 1, "b, c"), ("2.3.1", "3.9.2", 2, "a")],
)
def test_a_bounce_that_stopped_halfway_is_finished_or_taken_back(halfway, new, old, step, done):
    file = halfway(a=["2.3.1"], b=["3.9.2"], c=["3.9.2"])
    made = json.loads(plan("--problem", file, "--to", new, "--no-costs").stdout)
    assert made["from"] == old
    release = made["steps"][step - 1]["release"]
    assert f"run {release} already, as after step {step}, are {done};" in made["group"]["begun"]
    words = ["plan", "--problem", str(file), "--to", new, "--no-costs", "--report"]
    page = file.with_suffix(".html")
    text = CliRunner().invoke(main, [*words, str(page)]).stdout
    assert f"  !! {made['group']['begun']}" in text
    assert "this continues a bounce" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("uses", "new", "done"),
    [
        ("ktable", "3.4.1", "as after step 2, are a; check"),
        ("fk-join", "2.8.2", "as after step 1, are a; this step stops all members, these too"),
    ],
)
def test_a_bounce_that_stopped_halfway_is_continued_as_the_features_demand(
    halfway, uses, new, done
):
    file = halfway(a=[new], b=["4.3.1"], c=["4.3.1"])
    words = ("--problem", file, "--to", new, "--uses", uses, "--no-costs")
    made = json.loads(plan(*words).stdout)
    assert f"run {new} already, {done}" in made["group"]["begun"]


def test_the_plans_that_come_first_name_only_releases_that_are_certain(halfway):
    file = halfway(a=["2.8.1", "2.8.2"], b=["3.8.1", "3.9.2"])
    done = plan("--problem", file, "--to", "4.3", "--no-costs")
    assert done.exit_code == 2
    ways = "plan --from A --to B or --from B --to A, where A is one of 2.8.1 to 2.8.2 and B is one"
    assert f"rolling-bounce {ways} of 3.8.1 to 3.9.2" in done.stderr


def test_members_whose_release_is_not_certain_are_to_be_checked(halfway):
    file = halfway(a=["2.3.1"], b=["3.8.1", "3.9.1", "3.9.2"])
    begun = json.loads(plan("--problem", file, "--to", "3.9", "--no-costs").stdout)["group"][
        "begun"
    ]
    assert "are b; check that they run it (they write what 3.8.1 to 3.9.2 do) with the" in begun


@pytest.mark.parametrize(
    ("releases", "words"),
    [
        ({"a": ["2.3.1"], "b": ["3.7.2"]}, ("--to", "4.3")),  # over 3.9.2
        ({"a": ["2.3.1"], "b": ["3.9.2"]}, ("--from", "3.9.1", "--to", "3.9")),
        ({"a": ["2.3.0", "2.3.1"], "b": ["3.9.2"]}, ("--to", "3.9")),
        ({"a": ["2.3.1"], "b": ["3.9.2"], "c": ["4.0.1"]}, ("--to", "4.3")),
    ],
)
def test_members_that_no_plan_begins_with_are_refused(halfway, releases, words):
    done = plan("--problem", halfway(**releases), *words, "--no-costs")
    assert done.exit_code == 2
    assert "members of the group differ" in done.stderr
    both = "rolling-bounce plan --from 2.3.1 --to 3.9.2 or --from 3.9.2 --to 2.3.1"
    assert (both in done.stderr) is (releases == {"a": ["2.3.1"], "b": ["3.9.2"]})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file"),
        ("{", "broken JSON"),
        ("{}\n{}\n", "the file has 2 problems; give one"),
        (json.dumps({"name": "g", "clients": {"c": {}}}), "saved by assignor inspect --save?"),
        (json.dumps({"name": "g", "clients": {}}), "no clients"),
    ],
)
def test_files_without_a_saved_group_are_refused(tmp_path, content, sentence):
    file = tmp_path / "group.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    done = plan("--problem", file, "--to", "4.1")
    assert done.exit_code == 2
    assert sentence in done.stderr


def test_without_a_file_the_release_has_to_be_given():
    done = plan("--to", "4.1")
    assert done.exit_code == 2
    assert "--from RELEASE, --problem FILE or --group ID" in done.stderr


def with_instances(file, ids):
    """Give the first members of a saved group a group.instance.id."""
    data = json.loads(file.read_text(encoding="utf-8"))
    for client, instance in zip(data["clients"].values(), ids, strict=False):
        client["instance_ids"] = [instance]
    file.write_text(json.dumps(data), encoding="utf-8")
    return file


def test_a_saved_group_tells_which_members_are_static(saved):
    file = saved("two-3.9.1")
    words = ("--problem", file, "--from", "3.9.1", "--to", "4.1", "--no-costs", "--format", "json")

    def made():
        return json.loads(CliRunner().invoke(main, ["plan", *map(str, words)]).stdout)

    assert (made()["uses"], made()["group"]["is_static"]) == ([], False)
    with_instances(file, ["a"])
    assert (made()["uses"], made()["group"]["is_static"]) == (["static"], False)
    assert made()["group"]["notes"][-1].startswith("1 of 2 members are static")
    with_instances(file, ["a", "b"])
    assert (made()["uses"], made()["group"]["is_static"]) == (["static"], True)
    assert made()["group"]["notes"] == []


@pytest.mark.parametrize("ids", [[], ["a"]])
def test_a_note_says_that_the_saved_members_are_simulated_as_static(saved, ids):
    file = with_instances(saved("two-3.9.1"), ids)
    words = f"plan --problem {file} --from 3.9.1 --to 4.1 --no-costs --format json --uses static"
    group = json.loads(CliRunner().invoke(main, words.split()).stdout)["group"]
    assert group["is_static"]
    (note,) = group["notes"]
    assert note.startswith("--uses static: all 2 members are simulated as static ones, although")
    assert f"has a group.instance.id of {len(ids)} of them only" in note


def test_inspect_saves_the_instance_ids_of_static_members():
    described, facts = captured("two-3.9.1")
    static = replace(described.members[0], instance_id="jvm-1")
    found = problem_of(
        inspect_group(replace(described, members=(static, *described.members[1:])), facts)
    )
    known = [client.get("instance_ids") for client in found["clients"].values()]
    assert sorted(known, key=str) == [None, ["jvm-1"]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"protocol": "consumer"}, "protocol is 'consumer'; give \"streams\""),
        ({"versions": [{"releases": ["9.9.9"]}]}, "has releases ['9.9.9'], of which none is known"),
        (
            {"versions": [{"releases": ["2.3.1"]}, {"releases": ["4.3.1"]}, {"releases": ["x"]}]},
            "has releases ['x'], of which none is known",
        ),
        (
            {"versions": [{"releases": ["2.3.1"]}, {"native": 101}]},
            "contradicts itself: its threads have versions of 2.3.1 and of native, and a process",
        ),
        (
            {"versions": [{"native": "no"}]},
            ": versions has native 'no'; give the native version, or null",
        ),
        ({"versions": [{"releases": "4.3.1"}]}, ": versions: releases is str; give a list"),
        ({"versions": [{"releases": [431]}]}, ": versions: releases has entry 431; give texts"),
        ({"versions": ["4.3.1"]}, ": an entry of versions is "),
        ({"versions": "4.3.1"}, ": versions is str; give a list"),
        ({"loose": ["wc"]}, "unattributed_changelogs is ['wc']; give an object of topics"),
        ({"records": 2**62}, "is 4,611,686,018,427,387,904 records; plan takes up to 10,000,000"),
    ],
)
@pytest.mark.parametrize("to", ["4.1", "streams"])
def test_hostile_files_get_a_sentence(saved, change, sentence, to):
    file = saved("two-3.9.1")
    data = json.loads(file.read_text(encoding="utf-8"))
    for client in data["clients"].values():
        client["versions"] = change.get("versions", client["versions"])
    sums = data["end_offset_sums"]
    sums[min(sums)] = change.get("records", sums[min(sums)])
    data |= {"protocol": change.get("protocol"), "unattributed_changelogs": change.get("loose")}
    file.write_text(json.dumps(data), encoding="utf-8")
    brokers = ("--brokers", "4.3") if to == "streams" else ()
    words = ["plan", "--problem", str(file), "--from", "3.9", "--to", to, *brokers]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in " ".join(done.stderr.split())


@pytest.mark.parametrize("to", [["next"], ["streams", "--brokers", "4.3"]])
def test_the_report_has_no_control_characters_of_the_name(saved, tmp_path, to):
    page, file = tmp_path / "plan.html", saved("natives" if to == ["next"] else "two-3.9.1")
    data = json.loads(file.read_text(encoding="utf-8")) | {"name": "a\x1b[2J\u202e\nb"}
    file.write_text(json.dumps(data), encoding="utf-8")
    release = [] if to == ["next"] else ["--from", "4.3"]
    words = ["plan", "--problem", file, *release, "--to", *to, "--report", page]
    more = ["--no-costs"] if to == ["next"] else []
    done = CliRunner().invoke(main, [*map(str, words), *more])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert not {"\x1b", "\u202e"} & set(text)
    assert text.count(r"group a\x1b[2J\u202e\nb") >= 2  # title and head


@pytest.mark.parametrize(("records", "size"), [(7000, " (7,000 records)"), (None, "")])
def test_changelogs_of_unknown_tasks_are_no_missing_state(saved, tmp_path, records, size):
    file = saved("two-3.9.1", unattributed_changelogs={"wc-counts-changelog": records})
    report = tmp_path / "plan.html"
    words = ["plan", "--problem", str(file), "--from", "3.9.1", "--to", "4.1", "--no-costs"]
    done = CliRunner().invoke(main, [*words, "--report", str(report)])
    sentence = f"the group has the changelogs wc-counts-changelog{size}, and the file does not say"
    assert sentence in done.stdout
    page = report.read_text(encoding="utf-8")
    assert "their restore is not in the costs" in page
    assert 'class="verdict check"' in page
