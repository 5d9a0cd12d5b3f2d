"""Measures of each group as the core's, the groups most worth touching, columns and partitions."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from assignor import read_problem
from assignor.cli import main as assignor
from assignor.cli import make_problem
from spark_assign.tables import group_batch

# Groups in which 0, 1 and 2 clients have just joined.
PROBLEMS = [
    make_problem(clients=3, tasks=12 + n, standbys=1, joined=n % 3, seed=n) | {"name": f"group-{n}"}
    for n in range(6)
]


@pytest.fixture
def groups(tmp_path):
    path = tmp_path / "groups.jsonl"
    path.write_text("".join(json.dumps(problem) + "\n" for problem in PROBLEMS), encoding="utf-8")
    return path


def by_worth(measures):
    """Names of groups with a worth above 0, in the documented order."""
    worth = {name: found for name, found in measures.items() if found["worth"] > 0}
    return sorted(worth, key=lambda n: (-worth[n]["worth"], worth[n]["restored_records"], n))


def test_batch_measures_groups_as_assign_does_and_lists_those_most_worth_touching(
    call, spark, tmp_path, groups
):
    done = CliRunner().invoke(assignor, ["assign", "--problem", str(groups), "--format", "json"])
    answers = map(json.loads, done.stdout.splitlines())
    core = {answer["name"]: answer["measures"] for answer in answers}
    result = call("batch", "--in", "@groups.jsonl", "--out", "@all", "--format", "json")
    assert result.exit_code == 0, result.stderr
    rows = spark.read.parquet(f"{tmp_path}/all").collect()
    assert {row.name: row.measures.asDict() for row in rows} == core
    ranked = by_worth(core)
    assert 3 < len(ranked) < len(PROBLEMS)
    summary = json.loads(result.stdout)
    assert summary["worth"] == len(ranked)
    assert [row["name"] for row in summary["most_worth"]] == ranked[:5]
    for row in summary["most_worth"]:
        assert row == {"name": row["name"]} | {k: core[row["name"]][k] for k in row if k != "name"}
    for total, parts in (
        ("tasks", ["tasks"]),
        ("restores", ["restores"]),
        ("warmups", ["warmups"]),
    ):
        assert summary[total] == sum(found[part] for found in core.values() for part in parts)

    few = call("batch", "--in", "@groups.jsonl", "--out", "@few", "--only-worth", "2")
    assert few.exit_code == 0, few.stderr
    kept = spark.read.parquet(f"{tmp_path}/few")
    assert sorted(row.name for row in kept.collect()) == sorted(ranked[:2])
    assert sorted(path.name for path in (tmp_path / "few").glob("_*")) == [
        "_SUCCESS",
        "_summary.json",
    ]
    head, columns, *lines = few.stdout.splitlines()[1:]
    assert head == f"worth touching: {len(ranked)} of 6 groups; the first 2:"
    assert columns.split()[:4] == ["group", "worth", "gained", "touched"]
    assert [line.split()[0] for line in lines] == ranked[:2]


def test_without_a_group_worth_touching_the_output_is_empty(call, spark, tmp_path):
    (tmp_path / "even.jsonl").write_text(json.dumps(PROBLEMS[0]), encoding="utf-8")
    result = call("batch", "--in", "@even.jsonl", "--out", "@few", "--only-worth", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("worth touching: none of 1 groups\n")
    kept = spark.read.parquet(f"{tmp_path}/few")
    assert (kept.count(), "measures" in kept.columns) == (0, True)


def write_teams(path):
    """Groups as Parquet in a directory for each team, with a column of the owner's."""
    for team, part in (("web", PROBLEMS[:2]), ("data", PROBLEMS[2:4])):
        states = [(problem["name"], read_problem(problem).state) for problem in part]
        table = pa.Table.from_batches([group_batch(states)])
        costs = pa.array([len(name) + n for n, (name, _) in enumerate(states)])
        folder = path / f"team={team}"
        folder.mkdir(parents=True)
        pq.write_table(table.append_column("cost", costs), folder / "part.parquet")


def test_columns_of_the_input_are_kept_and_partition_the_output(call, spark, tmp_path):
    write_teams(tmp_path / "groups")
    # The larger group of each team counts as huge.
    result = call(
        *("batch", "--in", "@groups", "--out", "@plans", "--huge-tasks", "14", "--format", "json"),
        *("--keep", "cost", "--partition-by", "team"),
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["huge"] == 1
    assert sorted(path.name for path in (tmp_path / "plans").glob("team=*")) == [
        "team=data",
        "team=web",
    ]
    rows = {row.name: row for row in spark.read.parquet(f"{tmp_path}/plans").collect()}
    found = {name: (row.team, row.cost) for name, row in rows.items()}
    assert found == {
        "group-0": ("web", 7),
        "group-1": ("web", 8),
        "group-2": ("data", 7),
        "group-3": ("data", 8),
    }
    huge, small = rows["group-3"].measures, rows["group-1"].measures
    assert (huge.tasks, huge.clients) == (15, 3)
    assert None not in small
    assert None not in huge
    missing = call("batch", "--in", "@groups", "--out", "@x", "--keep", "price")
    assert missing.exit_code == 2
    assert "column price to keep is missing (its columns: name, " in missing.stderr


@pytest.mark.nightly(
    "8 s of Spark; every run compares costs of huge plans with the core's, without"
)
def test_huge_group_has_the_costs_that_the_core_counts(call, spark, tmp_path):
    state = read_problem(PROBLEMS[2] | {"config": {"num.standby.replicas": 0}}).state
    pq.write_table(
        pa.Table.from_batches([group_batch([("huge", state)])]), tmp_path / "groups.parquet"
    )
    where = ("--in", "@groups.parquet", "--strategy", "sticky")
    for out, size in (("@huge", "1"), ("@small", "1000")):
        result = call("batch", *where, "--out", out, "--huge-tasks", size)
        assert result.exit_code == 0, result.stderr
    [huge], [small] = (
        spark.read.parquet(f"{tmp_path}/{out}").collect() for out in ("huge", "small")
    )
    names = ["tasks", "clients", "handoffs", "takeovers", "stateless_moves", "restores", "cold"]
    assert [huge.measures[name] for name in names] == [small.measures[name] for name in names]
    assert huge.measures.handoffs == huge.measures.restores > 0
    assert huge.measures.restored_records > 0
    names = ["gained", "touched", "worth", "balance_before", "balance_after", "balance_settled"]
    assert [huge.measures[name] for name in names] == [small.measures[name] for name in names]
    assert huge.measures.worth > 0
    ranked = call("batch", *where, "--out", "@one", "--huge-tasks", "1", "--only-worth", "3")
    assert ranked.exit_code == 0, ranked.stderr
    assert "worth touching: 1 of 1 groups:" in ranked.stdout
    assert spark.read.parquet(f"{tmp_path}/one").count() == 1


def test_table_of_the_catalog_is_read_like_files(call, spark, tmp_path):
    states = [(problem["name"], read_problem(problem).state) for problem in PROBLEMS[:2]]
    spark.createDataFrame(pa.Table.from_batches([group_batch(states)])).createOrReplaceTempView(
        "fleet"
    )
    try:
        result = call("batch", "--table", "fleet", "--out", "@plans", "--format", "json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["groups"] == 2
        result = call("group", "--table", "fleet", "--name", "group-1", "--out", "@one")
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith("13 tasks placed on 4 clients")
        result = call("group", "--table", "fleet", "--name", "nope", "--out", "@none")
        assert result.exit_code == 2
        assert "fleet has no group nope; give the name of one that it has" in result.stderr
    finally:
        spark.catalog.dropTempView("fleet")
    gone = call("batch", "--table", "fleet", "--out", "@more")
    assert gone.exit_code == 2
    assert "there is no table fleet; give CATALOG.SCHEMA.TABLE" in gone.stderr
    for command in ("batch", "whatif", "group"):
        more = ("--scenarios", "now") if command == "whatif" else ()
        both = call(command, "--in", "x", "--table", "fleet", "--out", "@more", *more)
        assert "give either --in PATH or --table NAME" in both.stderr
