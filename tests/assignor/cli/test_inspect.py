"""`assignor inspect` of captured groups that are replayed onto an embedded broker."""

import json
import time
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from assignor.cli import main
from system_tests.broker import Fault, running_broker
from system_tests.coordinator import CommitOffsets, CommittedOffset, OffsetKey
from tests.assignor.adapters.connections import refusing_server
from tests.assignor.inspection.described_groups import (
    PLACING,
    captured,
    group_of,
    knock,
    member,
    place,
)

COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
GROUP_AUTHORIZATION_FAILED = 30
TOPIC_AUTHORIZATION_FAILED = 29


def inspect(broker, *words):
    servers = broker.bootstrap_servers[0]
    command = ["inspect", "--bootstrap-server", servers, "--timeout", "120", *map(str, words)]
    return CliRunner().invoke(main, command)


@pytest.fixture(scope="module")
def placed(clock):
    """A broker with two captured groups, their topics, and a stock group."""
    with running_broker(PLACING) as broker:
        for name in ("pinned-2.3.1", "natives"):
            group, facts = captured(name)
            for topic, row in facts.topics.items():
                broker.create_topic(topic, row.partitions)
            place(broker, group)
        place(broker, group_of(member("stock"), group_id="stock", protocol_name="range"))
        yield broker


@pytest.fixture(scope="module")
def pinned():
    return captured("pinned-2.3.1")[0].group_id


def test_the_pin_is_named_in_text(placed, pinned):
    done = inspect(placed, "--group", pinned)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith(
        f"group {pinned} with 4 members, Stable; 4 clients, 8 tasks, 4 standby tasks"
    )
    assert "version  2 instead of 11, limited by old" in done.output
    row = next(line.split() for line in lines if line.startswith("old "))
    assert row[:4] == ["old", "2", "2", "0.10.1.0-1.1.1,"]
    output = " ".join(done.output.split())
    assert (
        "! old limits the group to version 2: it writes version 2: either upgrade.from is" in output
    )
    assert "set on it, to 0.10.1, 0.10.2, 0.11.0, 1.0 or 1.1" in output
    assert max(map(len, lines)) <= 100


def test_tasks_are_listed_where_asked_for(placed, pinned):
    assert "reads" not in inspect(placed, "--group", pinned).output
    done = inspect(placed, "--group", pinned, "--tasks")
    assert any(
        line.split()[:4] == ["1_0", f"{pinned}-counts-repartition-0", "old", "ours"]
        for line in done.output.splitlines()
    )


def test_the_document_has_it_all(placed, pinned):
    done = inspect(placed, "--group", pinned, "--format", "json")
    found = json.loads(done.output)
    assert found["group"] == pinned
    assert found["assignor"] == "stream"
    assert found["version"]["in_force"] == 2
    (held,) = found["version"]["held_by"]
    assert (held["client"], held["kind"]) == ("old", "pin or old program")
    assert found["leader"]["candidates"] == ["jvm0", "jvm1"]
    assert found["record"]["limit"] == 1_048_588
    assert [client["client"] for client in found["clients"]] == ["jvm0", "jvm1", "old", "ours"]
    native = found["clients"][-1]["members"][0]
    assert (native["used"], native["supported"], native["native"]) == (11, 11, 101)
    assert native["answer"]["version"] == 2
    assert found["next_rebalance_ms"] is None
    old = found["clients"][2]["members"][0]
    assert old["supported"] == -1
    assert old["upgrade_from"] == ["0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"]
    assert {finding["kind"] for finding in found["findings"]} == {"holds-version", "before-probing"}


def test_all_groups_are_a_table_or_a_line_each(placed, pinned):
    *table, last = inspect(placed, "--all").output.splitlines()
    assert last == "Groups that this user may not describe are not listed."
    rows = [line.split() for line in table]
    by_group = {row[0]: row for row in rows}
    assert by_group[pinned][1:3] == ["Stable", "Streams"]
    assert by_group[pinned][5:] == ["2", "of", "11", "0.10.1.0-1.1.1,", *by_group[pinned][9:]]
    assert by_group[pinned][-5:] == ["native", "v101", "limited", "by", "old"]
    assert by_group["stock"][1:3] == ["Stable", "range"]
    lines = inspect(placed, "--all", "--format", "json").output.splitlines()
    assert {json.loads(line)["group"] for line in lines} == by_group.keys() - {"group"}


def test_a_stock_group_is_shown_as_far_as_it_goes(placed):
    done = inspect(placed, "--group", "stock")
    assert done.exit_code == 0
    assert "is not a Streams group: its assignor is range" in done.output
    assert json.loads(inspect(placed, "--group", "stock", "--format", "json").output)[
        "streams"
    ] is (False)


def test_an_unknown_group_is_one_sentence_and_status_1(placed):
    done = inspect(placed, "--group", "nobody")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "assignor: group nobody is not known to the cluster, or was deleted; "
        "list all groups with --all.\n"
    )


def test_a_saved_group_is_taken_by_the_other_commands(placed, pinned, tmp_path):
    file = tmp_path / "group.json"
    done = inspect(placed, "--group", pinned, "--save", file, "--dies", "ours")
    assert done.exit_code == 0, done.output
    for words in (
        ("assign", "--problem", file, "--simulate"),
        ("explain", "--problem", file),
        ("size", "--problem", file),
    ):
        taken = CliRunner().invoke(main, [str(word) for word in words])
        assert taken.exit_code == 0, taken.output
    assert json.loads(file.read_text(encoding="utf-8"))["events"][0]["type"] == "leave"


def test_saving_what_cannot_be_saved_ends_with_a_sentence(placed, pinned, tmp_path):
    for words, status, message in (
        (("--group", "stock", "--save", tmp_path / "f"), 1, "only Streams groups can be saved"),
        (("--group", pinned, "--save", tmp_path / "f", "--dies", "x"), 1, "'x' is not a client"),
        (("--group", pinned, "--save", tmp_path / "no" / "f"), 3, "cannot write"),
    ):
        done = inspect(placed, *words)
        assert (done.exit_code, done.stdout) == (status, "")
        assert message in done.stderr


def test_all_groups_are_saved_a_line_each_and_the_left_out_are_named(placed, pinned, tmp_path):
    file = tmp_path / "groups.jsonl"
    done = inspect(placed, "--all", "--save", file)
    assert done.exit_code == 0, done.output
    problems = {
        json.loads(line)["name"]: line for line in file.read_text(encoding="utf-8").splitlines()
    }
    assert pinned in problems
    assert len(problems) == 2
    inspect(placed, "--group", pinned, "--save", tmp_path / "one")
    problem = json.loads((tmp_path / "one").read_text(encoding="utf-8"))
    assert json.loads(problems[pinned])["clients"] == problem["clients"]
    (warning,) = [line for line in done.stderr.splitlines() if "is not saved" in line]
    assert warning.startswith("warning: group stock is not saved: group stock with 1 member is no")


@pytest.mark.usefixtures("clock")
def test_if_no_group_can_be_saved_the_exit_status_is_1(tmp_path):
    with running_broker(PLACING) as broker:
        place(broker, group_of(member("stock"), group_id="stock", protocol_name="range"))
        done = inspect(broker, "--all", "--save", tmp_path / "f")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no group can be saved" in done.stderr
    assert not (tmp_path / "f").exists()


def test_options_that_do_not_go_together_are_refused():
    nowhere = SimpleNamespace(bootstrap_servers=["b:1"])
    for words, message in (
        ((), "give either --group GROUP or --all"),
        (("--group", "g", "--all"), "give either --group GROUP or --all"),
        (("--group", "g", "--save", "f", "--watch", "1"), "--save and --watch exclude each other"),
        (("--group", "g", "--dies", "c"), "--dies needs --group and --save"),
        (("--all", "--save", "f", "--dies", "c"), "--dies needs --group and --save"),
        (("--group", "g", "--times", "2"), "--times needs --watch"),
    ):
        done = inspect(nowhere, *words)
        assert done.exit_code == 2
        assert message in done.stderr


def test_watching_looks_again_and_goes_on_after_a_failure(placed, pinned):
    placed.inject(Fault(api="DescribeGroups", error=GROUP_AUTHORIZATION_FAILED))
    done = inspect(placed, "--group", pinned, "--watch", "0.1", "--times", "2")
    assert done.exit_code == 0
    first, second = done.output.index("not authorized"), done.output.index("limited by old")
    assert first < second
    lines = inspect(
        placed, "--group", pinned, "--watch", "0.1", "--times", "2", "--format", "json"
    ).output.splitlines()
    assert [json.loads(line)["group"] for line in lines] == [pinned, pinned]


def test_watching_ends_well_when_it_is_interrupted(placed, pinned, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    # Of this command alone: others sleep too.
    clock = SimpleNamespace(sleep=interrupt, strftime=time.strftime, time=time.time)
    monkeypatch.setattr("assignor.cli.inspect.command.time", clock)
    done = inspect(placed, "--group", pinned, "--watch", "1")
    assert done.exit_code == 0
    assert "limited by old" in done.output


def test_a_group_that_may_not_be_described_ends_with_status_1(placed, pinned):
    placed.inject(Fault(api="DescribeGroups", error=GROUP_AUTHORIZATION_FAILED))
    done = inspect(placed, "--group", pinned)
    assert done.exit_code == 1
    assert done.stderr == (
        f"assignor: not authorized to describe group {pinned} (GROUP_AUTHORIZATION_FAILED); "
        "ask for the permission.\n"
    )


def test_of_all_groups_those_that_may_not_be_described_have_the_reason_in_their_rows(placed):
    placed.inject(Fault(api="DescribeGroups", error=GROUP_AUTHORIZATION_FAILED))
    done = inspect(placed, "--all")
    assert done.exit_code == 0
    output = " ".join(done.output.split())
    assert output.count("(GROUP_AUTHORIZATION_FAILED)") == len(placed.groups())
    assert "not authorized to describe group stock (GROUP_AUTHORIZATION_FAILED)" in output


@pytest.mark.parametrize("error", [COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR])
def test_a_coordinator_that_moves_is_found_again(placed, pinned, error):
    placed.inject(Fault(api="DescribeGroups", error=error, times=2))
    done = inspect(placed, "--group", pinned)
    assert done.exit_code == 0
    assert "limited by old" in done.output


def test_offsets_that_may_not_be_seen_are_a_finding_and_the_rest_is_shown(placed, pinned):
    placed.inject(Fault(api="OffsetFetch", error=GROUP_AUTHORIZATION_FAILED))
    placed.inject(Fault(api="ListOffsets", error=TOPIC_AUTHORIZATION_FAILED))
    done = inspect(placed, "--group", pinned)
    assert done.exit_code == 0
    output = " ".join(done.output.split())
    assert (
        f"not authorized to show the offsets of group {pinned} (GROUP_AUTHORIZATION_FAILED"
        in output
    )
    assert "not authorized to show end offsets (TOPIC_AUTHORIZATION_FAILED" in output
    assert "lag      not known" in done.output


@pytest.mark.usefixtures("clock")
def test_a_group_that_rebalances_is_waited_for_and_then_shown_as_it_is(monkeypatch):
    pauses, now = [], iter(range(0, 120, 20))
    virtual = SimpleNamespace(sleep=pauses.append, monotonic=lambda: next(now))
    monkeypatch.setattr("assignor.adapters.admin.groups.time", virtual)
    with running_broker(PLACING) as broker:
        group, _ = captured("natives")
        place(broker, group)
        # One more member joins and no other rejoins: the group waits for them.
        knock(broker, group_of(member("late"), group_id=group.group_id))
        done = inspect(broker, "--group", group.group_id)
    assert done.exit_code == 0
    assert len(pauses) == 2, "half of the time limit, 60 s, is over at the third look"
    assert "rebalances (PreparingRebalance): nothing is shown until it settles" in (
        " ".join(done.output.split())
    )


@pytest.mark.usefixtures("clock")
def test_a_group_without_members_has_its_lag_its_topics_and_what_does_not_fit():
    with running_broker(PLACING) as broker:
        for topic, size in (("words", 6), ("wc-counts-repartition", 4), ("gone", 1)):
            broker.create_topic(topic, size)
        commit(broker, "wc", {("words", 3): 0, ("wc-counts-repartition", 3): 0, ("gone", 0): 0})
        broker.call(lambda inner: inner.cluster.catalog.delete("gone"))
        done = inspect(broker, "--group", "wc")
        [row] = json.loads(inspect(broker, "--all", "--format", "json").output)["offsets"][:1]
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[:2] == ["group wc has no members now; its state is Empty", "lag  0 records"]
    assert ["gone", "none", "1", "?"] in [line.split() for line in lines]
    assert ["words", "6", "1", "0"] in [line.split() for line in lines]
    assert "! topic gone does not exist" in done.output
    assert "! words has 6 partitions, and the group has read those below 4 only" in done.output
    assert (row["topic"], row["current_offset"], row["log_end_offset"]) == ("gone", 0, None)


@pytest.mark.usefixtures("clock")
def test_all_groups_are_asked_about_in_as_many_requests_as_one():
    asked = []
    with running_broker(PLACING) as broker:
        broker.create_topic("in", 2)
        for number in (0, *range(2, 12)):
            group = f"app{number}"
            place(broker, group_of(member("m", group=group), group_id=group))
            commit(broker, f"stopped{number}", {("in", 0): 0})
            if number in (0, 11):
                before = len(broker.requests())
                assert inspect(broker, "--all").exit_code == 0
                asked.append([request.api for request in broker.requests()[before:]])
    assert asked[0] == asked[1]
    assert asked[0].index("OffsetFetch") < asked[0].index("ListOffsets"), "no commit is beyond"
    assert (asked[0].count("DescribeGroups"), asked[0].count("ListOffsets")) == (1, 2)


def commit(broker, group_id, offsets):
    rows = {OffsetKey(*key): CommittedOffset(offset, -1, "") for key, offset in offsets.items()}
    request = CommitOffsets(
        group_id=group_id, offsets=rows, member_id="", generation=-1, instance_id=None
    )
    return broker.run(_answer(broker._broker.cluster, request))


async def _answer(cluster, request):
    return await cluster.ask(request)


@pytest.mark.usefixtures("clock")
def test_without_a_group_the_rights_of_the_user_are_named():
    with running_broker() as broker:
        assert inspect(broker, "--all").output == "no group that this user may describe\n"


@pytest.mark.usefixtures("clock")
def test_where_no_broker_is_it_ends_with_status_3():
    with refusing_server() as server:
        command = ["inspect", "--bootstrap-server", server, "--group", "g"]
        done = CliRunner().invoke(main, command)
    assert done.exit_code == 3
    assert done.stderr == (f"assignor: no broker can be reached: {server}: connection refused.\n")
