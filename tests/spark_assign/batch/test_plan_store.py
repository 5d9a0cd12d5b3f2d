"""Many groups and their leaders: snapshots are placed, and the leaders take the plans."""

import json

import pytest
from click.testing import CliRunner

from assignor import read_problem
from assignor.cli import make_problem
from assignor.stores import OffloadedPlans, PlanStore
from spark_assign.batch import publish_plans
from spark_assign.cli.main import main


def group(number, joined):
    data = make_problem(clients=3, tasks=12, joined=joined, seed=number)
    return f"group-{number}", read_problem(data).state


GROUPS = [group(0, 0), group(1, 1), group(2, 2)]


@pytest.fixture
def store(tmp_path):
    """A plan store in which the leader of each group has left a snapshot."""
    opened = PlanStore(tmp_path / "store")
    for name, state in GROUPS:
        answer = leader(opened, name)(state)
        assert answer.active.tolist() == state.owner.tolist()
        assert "there is no plan yet" in answer.warnings[0]
    return opened


def leader(store, name):
    return OffloadedPlans(store, group=name, tasks_at_least=1)


def call(store, tmp_path, *arguments):
    where = ("--store", str(store.directory), "--out", f"{tmp_path}/plans", "--overwrite")
    return CliRunner().invoke(main, ["batch", *where, "--strategy", "sticky", *arguments])


def test_leaders_take_the_plans_of_the_groups_worth_touching(spark, store, tmp_path):
    result = call(store, tmp_path, "--only-worth", "1")
    assert result.exit_code == 0, result.stderr
    assert f"1 of 1 plans are in {store.directory} for their leaders\n" in result.stdout
    # group-2 gains 4 for 8 touched copies, group-1 gains 3 for 6.
    found = {name: store.read_plan(name) is not None for name, _ in GROUPS}
    assert found == {"group-0": False, "group-1": False, "group-2": True}
    name, state = GROUPS[2]
    answer = leader(store, name)(state)
    assert answer.active.tolist() == store.read_plan(name).assignment.active.tolist()
    assert answer.active.tolist() != state.owner.tolist()
    assert answer.warnings == ()

    everything = call(store, tmp_path, "--format", "json")
    assert everything.exit_code == 0, everything.stderr
    assert json.loads(everything.stdout)["refused"] == []
    assert all(store.read_plan(name) is not None for name, _ in GROUPS)


def test_plan_that_does_not_fit_the_snapshot_is_refused_with_its_group(spark, store, tmp_path):
    plans = [
        ("group-0", True, {"ghost": {"active": ["0_0"], "standby": [], "warmup": []}}),
        ("unknown", False, {}),
    ]
    held = "struct<active:array<string>,standby:array<string>,warmup:array<string>>"
    rows = spark.createDataFrame(plans, f"name string, probing boolean, clients map<string,{held}>")
    errors = {row.name: row.error for row in publish_plans(rows, store.directory).collect()}
    assert "ghost" in errors["group-0"]
    assert errors["unknown"].endswith("state.bin does not exist")
    assert store.read_plan("group-0") is None


def test_store_without_snapshots_and_other_inputs_beside_it_are_refused(spark, store, tmp_path):
    other = call(store, tmp_path, "--in", "groups.jsonl")
    assert other.exit_code == 2
    assert "--store reads the groups from the store" in other.stderr
    empty = call(PlanStore(tmp_path / "empty"), tmp_path)
    assert empty.exit_code == 2
    assert f"no snapshot in {tmp_path}/empty; leaders write them" in empty.stderr
    path = store.snapshot_path("group-2")
    path.write_bytes(path.read_bytes()[:-3])
    damaged = call(store, tmp_path)
    assert damaged.exit_code == 2
    assert "group-2/state.bin" in damaged.stderr
