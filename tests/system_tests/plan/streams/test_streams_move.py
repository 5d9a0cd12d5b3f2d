"""The move to the streams protocol: who is refused, what it costs, what is restored."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from assignor import read_problem
from assignor.problems import ProblemError
from probing import ReleaseError, find_release
from system_tests.cli.main import main
from system_tests.plan import Use, plan_streams_move, restored_by_broker
from system_tests.plan.changes import STREAMS_BROKERS
from system_tests.plan.streams import restored

SAVED = {
    "name": "shop",
    "topics": {"orders": {"partitions": 4}},
    "subtopologies": {"0": {"sources": ["orders"], "changelogs": ["shop-totals-changelog"]}},
    "end_offset_sums": {"0_0": 1000, "0_1": 1000, "0_2": 1000, "0_3": 1000},
    "clients": {
        "a": {"active": ["0_0", "0_1"], "lags": {"0_0": "running", "0_1": "running"}},
        "b": {"active": ["0_2", "0_3"], "lags": {"0_2": "running", "0_3": "running"}},
    },
}


def plan(*words):
    return CliRunner().invoke(main, ["plan", "--to", "streams", *words])


def test_the_plan_says_cost_way_back_and_point_of_no_return():
    done = plan("--from", "4.3", "--brokers", "4.2")
    assert done.exit_code == 0
    text = done.stdout
    assert "45 s of session timeout" in text
    assert "--group GROUP: state Empty" in text
    assert "the committed offsets" in text
    assert "changelog and repartition topics, unchanged" in text
    assert "point of no return: none" in text
    assert text.count("  back: ") == 2
    document = json.loads(plan("--from", "4.3", "--brokers", "4.3", "--format", "json").stdout)
    assert [step["what"].split(",")[0] for step in document["steps"]] == [
        "stop all members",
        "start all members with group.protocol=streams",
    ]
    assert document["assignor"] == "sticky"


def test_a_saved_group_says_what_is_restored(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    done = plan("--from", "4.3", "--brokers", "4.3", "--problem", str(file))
    assert done.exit_code == 0, done.output
    assert "4 stateful tasks restore 2,000 records (in 5 to 95 % of 200 draws" in done.stdout
    assert "4,000 if state directories are lost or stores are in memory" in done.stdout
    slow = ("--from", "4.3", "--brokers", "4.3", "--problem", str(file), "--restore-rate", "1000")
    downtime = plan(*slow).stdout.partition("\n\n")[0]
    assert "and the restore, 1,000 / 1,000 a second = 1 s for the largest changelog" in downtime
    assert "run: 49 s plus the start of the JVMs; the 49 s are 45 s of session" in downtime


def test_static_members_of_a_saved_group_cannot_move(tmp_path):
    file = tmp_path / "group.json"
    static = {name: row | {"instance_ids": [name]} for name, row in SAVED["clients"].items()}
    file.write_text(json.dumps(SAVED | {"clients": static}), encoding="utf-8")
    done = plan("--from", "4.3", "--brokers", "4.3", "--problem", str(file))
    assert done.exit_code == 1, done.output
    assert "refused: static members: 4.3.1 refuses group.instance.id" in done.stdout


def test_a_saved_group_is_read_once_as_a_pipe_can_be(tmp_path, monkeypatch):
    file, opened, real_open = tmp_path / "group.json", [], Path.open
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    monkeypatch.setattr(Path, "open", lambda path, *w: opened.append(path) or real_open(path, *w))
    done = plan("--from", "4.3", "--brokers", "4.3", "--problem", str(file))
    assert "4 stateful tasks restore" in done.stdout
    assert opened.count(file) == 1


@pytest.mark.parametrize("to", ["STREAMS", "4.3"])
def test_a_report_does_not_overwrite_the_saved_group(tmp_path, to):
    file, link = tmp_path / "group.json", tmp_path / "link.html"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    link.symlink_to(file)
    brokers = ["--brokers", "4.3"] if to == "STREAMS" else []
    for report in (file, tmp_path / ".." / tmp_path.name / file.name, link):
        words = ["--from", "4.3", "--to", to, *brokers, "--problem", str(file)]
        done = CliRunner().invoke(main, ["plan", *words, "--report", str(report)])
        assert done.exit_code == 2
        assert "is the file of --problem and would overwrite the saved group" in done.stderr
        assert json.loads(file.read_text(encoding="utf-8")) == SAVED


def test_the_name_of_the_protocol_may_be_in_upper_case():
    words = ["plan", "--from", "4.3", "--brokers", "4.3", "--to"]
    upper, lower = (CliRunner().invoke(main, [*words, to]) for to in ("STREAMS", "streams"))
    assert (upper.exit_code, upper.stdout) == (0, lower.stdout)
    assert "is part of the move" in plan("--from", "STREAMS", "--brokers", "4.3").stderr


def test_the_way_back_restores_nothing_that_is_on_disk(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    shown = plan("--from", "4.3", "--brokers", "4.3", "--problem", str(file)).stdout
    back = shown.partition("What going back restores:")[2].partition("\n\n")[0]
    assert "before their tasks run\n" in back
    assert "that holds if each member comes back on its host with its state" in back
    assert "4,000 records if state directories are lost or stores are in memory" in back
    assert shown.count("before their tasks run\n") == 1


def test_the_way_back_is_computed_with_the_class_of_the_classic_protocol():
    large = dict.fromkeys(SAVED["end_offset_sums"], 1000000)
    found = restored_by_broker(read_problem(SAVED | {"end_offset_sums": large}).state)
    assert found.median == 2_000_000
    assert found.returned == (0, 0, 0)
    assert "they restore 4,000,000 records if state directories are lost" in found.way_back[-1]
    # With an acceptable lag above all changelogs, every member counts as caught up.
    lax = {"end_offset_sums": large, "config": {"acceptable.recovery.lag": 2_000_000}}
    assert restored_by_broker(read_problem(SAVED | lax).state).returned[2] > 0


def test_process_ids_are_kept_by_state_directories():
    names = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
    clients = dict(zip(names, SAVED["clients"].values(), strict=True))
    state = read_problem(SAVED | {"clients": clients}).state
    seen = []

    def assign(members, **_):
        seen.extend({member.process_id for member in members})
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restored, "assign_members", assign)
        restored_by_broker(state, seeds=3)
    assert sorted(set(seen)) == names


def test_a_healthy_start_does_not_meet_the_rule_to_stop():
    stop = json.loads(plan("--from", "4.3", "--brokers", "4.3", "--format", "json").stdout)
    rule = stop["steps"][1]["stop"]
    assert rule.startswith("60 s, or 2 times the restore if that is longer, after the last start")
    assert "normal while tasks start" in stop["steps"][1]["seen"]
    assert "that is not about committed offsets is still there" in rule


def test_a_member_is_done_and_the_move_is_stopped_after_the_restore(tmp_path):
    file = tmp_path / "group.json"
    words = ("--from", "4.3", "--brokers", "4.3", "--restore-rate", "1000", "--format", "json")

    def started(sizes, **clients):
        sums = {"end_offset_sums": dict.fromkeys(SAVED["end_offset_sums"], sizes)}
        file.write_text(json.dumps(SAVED | sums | clients), encoding="utf-8")
        return json.loads(plan(*words, "--problem", str(file)).stdout)["steps"][1]

    slow = started(100_000)
    assert "from REBALANCING to RUNNING, so its restore is finished" in slow["seen"]
    assert "lag 0 or what it was before" in slow["seen"]
    assert slow["stop"].startswith("200 s (2 times the restore, at least 60 s) after the last")
    assert started(1000)["stop"].startswith("60 s after the last start, the state is not Stable")
    both = {
        name: client
        | {"standby": [f"0_{n}" for n in range(4) if f"0_{n}" not in client["active"]]}
        | {"lags": {f"0_{n}": 5 for n in range(4)}}
        for name, client in SAVED["clients"].items()
    }
    lost = started(100_000, clients=both)["stop"]
    assert lost.startswith("60 s (2 times the restore, at least 60 s, 200 s if all state is lost)")


def test_the_level_of_streams_version_is_assumed_until_it_is_given(tmp_path):
    file, page = tmp_path / "group.json", tmp_path / "move.html"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    words = ("--from", "4.3", "--brokers", "4.3", "--problem", str(file), "--report", str(page))
    tool = "kafka-features.sh --bootstrap-server HOST:PORT"
    sentence = (
        "  assumed: streams.version 1; a cluster that was upgraded keeps 0\n"
        f"  check:   {tool} describe: the line Feature: streams.version must have"
        f" FinalizedVersionLevel: 1; if it has 0: {tool} upgrade --feature streams.version=1\n"
    )
    assert sentence in plan(*words).stdout
    before = (
        page.read_text(encoding="utf-8")
        .partition("<h2>Before you start</h2>")[2]
        .partition("<h2>")[0]
    )
    (row,) = (row for row in before.split("<tr") if "streams.version 1" in row)
    assert "&#9744;" in row
    assert re.sub("<(?!/?code).*?>", "", row).count(f"<code>{tool}") == 2
    assert '<span class="verdict check">' in page.read_text(encoding="utf-8")
    assert "assumed:" not in plan(*words, "--streams-version", "1").stdout
    assert '<span class="verdict go">' in page.read_text(encoding="utf-8")


def test_a_file_without_versions_says_that_the_release_is_not_checked(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    sentence = (
        "not checked: whether all members run 4.3.1: the file has no versions of 2 of 2 members"
    )
    move = plan("--from", "4.3", "--brokers", "4.3", "--problem", str(file))
    assert sentence in move.stderr
    assert sentence.partition(": ")[2] in move.stdout
    words = ["plan", "--from", "4.3", "--to", "4.2", "--seeds", "1", "--problem", str(file)]
    upgrade = CliRunner().invoke(main, words)
    assert sentence in upgrade.stderr
    assert sentence in upgrade.stdout
    row = {"versions": [{"releases": ["4.3.1"]}]}
    known = {name: client | row for name, client in SAVED["clients"].items()}
    file.write_text(json.dumps(SAVED | {"clients": known}), encoding="utf-8")
    assert "not checked:" not in CliRunner().invoke(main, words).stderr


def test_exactly_once_and_the_rehearsal_are_part_of_the_move():
    shown = plan("--from", "4.3", "--brokers", "4.3", "--uses", "eos").stdout
    assert "processing.guarantee keeps its value" in shown
    assert "processing.guarantee" not in plan("--from", "4.3", "--brokers", "4.3").stdout
    command = "try: rolling-bounce live --from 4.3.1 --to streams --broker kafka:4.3.1"
    assert f"{command} --session-timeout-ms 45000\n" in shown


def test_the_report_of_a_move_has_the_decision_and_every_step(tmp_path):
    file, page = tmp_path / "group.json", tmp_path / "move.html"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    words = ("--from", "4.3", "--brokers", "4.3", "--problem", str(file), "--report", str(page))
    assert plan(*words, "--streams-version", "1").exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert '<span class="verdict go">go, if the points below are met' in text
    for sentence in ("not Empty 90 s after the last stop", "restore 2,000 records", "KIP-1071"):
        assert sentence in text
    assert text.count("<tr><th>") == 3  # two steps, and the head of the conditions
    assert "<script" not in text
    assert plan(*words[:2], "--brokers", "4.2.0", "--report", str(page)).exit_code == 1
    assert '<span class="verdict stop">no go' in page.read_text(encoding="utf-8")
    assert "KAFKA-20254" in page.read_text(encoding="utf-8")
    done = plan(*words[:4], "--report", str(tmp_path / "missing" / "move.html"))
    assert done.exit_code == 3


def test_unknown_sizes_are_not_zero_records(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED | {"end_offset_sums": {}}), encoding="utf-8")
    done = plan("--from", "4.3", "--brokers", "4.3", "--problem", str(file))
    assert done.exit_code == 0, done.output
    assert "4 stateful tasks restore an unknown number of records" in done.stdout
    assert " 0 records" not in done.stdout
    assert "an unknown number of records if state directories are lost" in done.stdout


def test_what_is_restored_depends_on_the_copies():
    state = read_problem(SAVED).state
    found = restored_by_broker(state)
    assert (found.tasks, found.unknown, found.everything) == (4, 0, 4000)
    # Brokers deal the tasks in turn, and each client had two in a row: one of them misses.
    assert (found.low, found.median, found.high) == (2000, 2000, 2000)
    both = {
        name: {
            **client,
            "standby": [f"0_{n}" for n in range(4) if f"0_{n}" not in client["active"]],
            "lags": {f"0_{n}": 5 for n in range(4)},
        }
        for name, client in SAVED["clients"].items()
    }
    copied = restored_by_broker(read_problem(SAVED | {"clients": both}).state)
    assert copied.high <= 4 * 5
    unknown = restored_by_broker(read_problem(SAVED | {"end_offset_sums": {}}).state)
    assert (unknown.unknown, unknown.high) == (4, 0)


def test_tasks_are_dealt_to_threads():
    tasks = [f"0_{number}" for number in range(10)]
    clients = {"a": (9, tasks[:9]), "b": (1, tasks[9:])}
    data = SAVED | {
        "topics": {"orders": {"partitions": 10}},
        "end_offset_sums": dict.fromkeys(tasks, 1000),
        "clients": {
            name: {"threads": threads, "active": own, "lags": dict.fromkeys(own, "running")}
            for name, (threads, own) in clients.items()
        },
    }
    found = restored_by_broker(read_problem(data).state)
    # The class of 4.3.1 gives b one of ten tasks: it swaps one with a, in 200 draws of ids.
    assert (found.low, found.median, found.high) == (2000, 2000, 2000)
    data["clients"]["a"]["threads"] = 1_000_000
    with pytest.raises(
        ProblemError, match="cannot be computed: the clients have 1,000,001 threads"
    ):
        restored_by_broker(read_problem(data).state)


def test_members_of_4_2_can_move_and_native_ones_cannot():
    brokers = find_release("4.3")
    assert not plan_streams_move(find_release("4.2"), brokers, frozenset()).obstacles
    assert not plan_streams_move(find_release("4.3"), brokers, frozenset({Use.EOS})).obstacles
    [why] = plan_streams_move(find_release("native"), brokers, frozenset()).obstacles
    assert "for JVM members" in why
    with pytest.raises(ReleaseError):
        plan_streams_move(brokers, find_release("native"), frozenset())


def test_from_4_4_on_static_members_move_and_stay_until_their_sessions_end():
    done = plan("--from", "4.4", "--brokers", "4.4", "--uses", "static")
    assert done.exit_code == 0, done.output
    assert (
        "which stay in the group as static members until streams.session.timeout.ms" in done.stdout
    )
    for members, brokers in (("4.3", "4.4"), ("4.4", "4.3")):
        refused = plan("--from", members, "--brokers", brokers, "--uses", "static")
        assert refused.exit_code == 1
        assert "static members: 4.3.1 refuses group.instance.id" in refused.stdout


def test_from_4_4_on_the_first_assignment_knows_what_is_on_the_disks(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    words = ("--problem", str(file))
    new = plan("--from", "4.4", "--brokers", "4.4", *words).stdout
    assert "4 stateful tasks restore 0 records" in new
    assert "members report the offsets of state on their disks" in new
    for members, brokers in (("4.3", "4.4"), ("4.4", "4.3")):
        old = plan("--from", members, "--brokers", brokers, *words).stdout
        assert "4 stateful tasks restore 2,000 records" in old
        assert "the first assignment does not know where state is" in old


def test_the_offsets_of_a_group_are_what_its_copies_have_read():
    data = SAVED | {"clients": SAVED["clients"] | {"c": {"standby": ["0_0"], "lags": {"0_0": 300}}}}
    state = read_problem(data).state
    found = restored._offsets(state)
    read = {client: {str(task): at for task, at in rows.items()} for client, rows in found.items()}
    assert read[state.clients.index("c")] == {"0_0": 700}
    assert read[state.clients.index("a")] == {"0_0": 1000, "0_1": 1000}


@pytest.mark.parametrize("uses", [(), (Use.STATIC,)])
def test_what_a_refusal_names_is_not_refused_again(uses):
    refused = [row["since"] for row in STREAMS_BROKERS if row.get("refused")]
    old = plan_streams_move(find_release("3.9"), find_release(refused[0]), frozenset(uses))
    members = re.search(r"bring them to ([\d.]+) first", " ".join(old.obstacles))
    for brokers in refused:
        made = plan_streams_move(find_release("4.4"), find_release(brokers), frozenset(uses))
        named = re.search(r"; upgrade them to ([\d.]+)", " ".join(made.obstacles))
        ends = find_release(members[1]), find_release(named[1])
        assert plan_streams_move(*ends, frozenset(uses)).obstacles == ()
