"""`spark-assign batch --on-error reject`: an invalid row affects its own group only."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from spark_assign.cli.main import main
from spark_assign.tables.convert import GROUP_ARROW

STRATEGY = "tests.assignor.broken_strategies:as_a_client_says"


def problem(name, **changes):
    return {
        "name": name,
        "topics": {"t": {"partitions": 4}},
        "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
        "clients": {"a": {"active": ["0_0", "0_1"]}, "b": {}},
    } | changes


def line(name, **changes):
    return json.dumps(problem(name, **changes)).encode()


LINES = {
    "replicas of 10**30": (
        line("replicas", config={"num.standby.replicas": 10**30}),
        "num.standby.replicas = 1000000000000000000000000000000 is not allowed",
    ),
    "no clients": (line("no-clients", clients={}), "no clients"),
    "a strategy that raises": (
        line("raises", clients={"raises_task_assignment_error": {}}),
        "strategy as_a_client_says failed, TaskAssignmentError: none today",
    ),
    "a strategy that exits": (line("exits", clients={"exits": {}}), "failed, SystemExit: 0"),
    "a strategy that returns a dict": (
        line("dict", clients={"returns_dict": {}}),
        "the answer of strategy as_a_client_says is not valid: it is dict",
    ),
    "no subtopologies": (line("null", subtopologies=None), "subtopologies is null"),
    "a weight of 1e400": (line("weight", weights={"0_0": 10**400}), "weights of 0_0 is 1000"),
    "racks of 5,000 digits": (
        line("racks", topics={"t": {"partitions": 4, "racks": {"1" * 5000: ["r"]}}}),
        "racks of topic t name partition '1111",
    ),
    "half a surrogate pair": (
        line("surrogate", clients={"\ud800": {}}),
        "the group cannot be placed, UnicodeEncodeError",
    ),
    "events of unknown clients": (
        line("events", events=[{"type": "leave", "clients": [[[1]]]}]),
        "event 1, leave: clients has entry [[1]]",
    ),
    "broken JSON": (b"{broken", "broken JSON"),
    "no UTF-8": (b"\xff\xfe", "0xff is not UTF-8"),
}


def row(name, **changes):
    task = {"subtopology": 0, "partition": 0, "stateful": True, "owner": "a", "copies": []}
    return {
        "name": name,
        "config": [],
        "tasks": [task | {"copies": [{"client": "a", "lag": -1}]}, task | {"partition": 1}],
        "clients": [{"client": "a"}, {"client": "b"}],
    } | changes


def task(name, **changes):
    return row(name, tasks=[row(name)["tasks"][0] | changes])


def client(name, process_id):
    return task(name, owner=None, copies=[]) | {"clients": [{"client": process_id}]}


ROWS = {
    "replicas of 10**30": (
        row("replicas", config=[("num.standby.replicas", str(10**30))]),
        "num.standby.replicas = 1000000000000000000000000000000 is not allowed",
    ),
    "no clients": (row("no-clients", clients=[]), "a group needs a client"),
    "no clients of two copies": (
        task("copies", owner=None, copies=[{"client": "x"}, {"client": "y"}]) | {"clients": []},
        "a group needs a client",
    ),
    "a strategy that raises": (
        client("raises", "raises_task_assignment_error"),
        "strategy as_a_client_says failed, TaskAssignmentError: none today",
    ),
    "a strategy that exits": (client("exits", "exits"), "failed, SystemExit: 0"),
    "a strategy that returns a dict": (
        client("dict", "returns_dict"),
        "the answer of strategy as_a_client_says is not valid: it is dict",
    ),
    "tasks that are null": (row("null", tasks=None), "give a list, empty for a group without any"),
    "a null task": (row("null-task", tasks=[None]), "a task is null"),
    "a weight of 1e300": (task("weight", weight=1e300), "weights are above 0, up to 1e15"),
    "an unknown owner": (task("owner", owner="ghost"), "the group has no such client"),
    "no name": (row(None), "give the group a name"),
    "no UTF-8": (row("no-utf-8"), "the group cannot be placed, UnicodeDecodeError"),
}
VALID = ("first", "second", "third")


def mixed(valid, invalid):
    """Invalid groups with a valid one at the start, in the middle and at the end."""
    return [valid[0], *invalid[:6], valid[1], *invalid[6:], valid[2]]


def write_lines(path):
    written = mixed([line(name) for name in VALID], [given for given, _ in LINES.values()])
    path.write_bytes(b"\n".join(written) + b"\n")
    places = {given: f"{path}, line {number}" for number, given in enumerate(written, start=1)}
    return {places[given]: sentence for given, sentence in LINES.values()}


def write_rows(path):
    written = mixed([row(name) for name in VALID], [given for given, _ in ROWS.values()])
    table = pa.Table.from_pylist(written, schema=GROUP_ARROW)
    names = [group["name"] for group in written]
    raw = [b"no-\xff" if name == "no-utf-8" else name and name.encode() for name in names]
    column = pa.array(raw, pa.binary()).view(pa.string())
    pq.write_table(table.set_column(0, GROUP_ARROW.field("name"), column), path)
    places = {name: f"{path}, row {number}" for number, name in enumerate(names, start=1)}
    return {places[given["name"]]: sentence for given, sentence in ROWS.values()}


@pytest.mark.parametrize(
    ("name", "write", "tasks"),
    [("groups.jsonl", write_lines, 4), ("groups.parquet", write_rows, 2)],
)
def test_twelve_invalid_rows_affect_their_own_groups_only(spark, tmp_path, name, write, tasks):
    expected = write(tmp_path / name)
    assert len(expected) == 12
    arguments = ("batch", "--in", f"{tmp_path}/{name}", "--out", f"{tmp_path}/plans")
    result = CliRunner().invoke(
        main,
        [*arguments, "--strategy", STRATEGY, "--on-error", "reject", "--format", "json"],
    )
    assert result.exit_code == 1, (result.stderr, result.exception)
    summary = json.loads(result.stdout)
    assert (summary["groups"], summary["rejects"], summary["tasks"]) == (15, 12, 3 * tasks)
    plans = {plan.name: plan for plan in spark.read.parquet(f"{tmp_path}/plans").collect()}
    assert sorted(plans) == sorted(VALID)
    for plan in plans.values():
        assert sum(len(placed.active) for placed in plan.clients.values()) == tasks
    rejects = spark.read.parquet(f"{tmp_path}/plans/_rejects").collect()
    found = {reject.place: reject.reason for reject in rejects}
    assert sorted(found) == sorted(expected)
    for place, sentence in expected.items():
        assert sentence in found[place]
        assert found[place].isprintable()


@pytest.mark.parametrize("what", ["replicas of 10**30", "a strategy that raises"])
def test_the_first_invalid_row_is_named_if_it_fails_the_job(spark, tmp_path, what):
    given, sentence = LINES[what]
    path = tmp_path / "groups.jsonl"
    path.write_bytes(b"\n".join([line("good"), given]))
    arguments = ("batch", "--in", str(path), "--out", f"{tmp_path}/plans", "--strategy", STRATEGY)
    result = CliRunner().invoke(main, [*arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"spark-assign: group {json.loads(given)['name']} ({path}, line 2): "
    )
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "plans").exists()
