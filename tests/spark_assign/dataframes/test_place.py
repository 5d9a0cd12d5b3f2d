"""`spark_assign.place`: answers as the core's, other columns kept, the session untouched."""

import json
from dataclasses import asdict

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql.types import DataType

import spark_assign
from assignor import ConfigError, TaskAssignment, read_problem, validate
from assignor.cli import make_problem
from assignor.placement import named_strategy, run_with_trace
from assignor.problems import measures_of
from spark_assign import BadTable, ddl_of, group_schema, place, place_schema
from spark_assign.tables import group_batch


def problem(seed, **changes):
    made = make_problem(clients=4, tasks=12, standbys=1, seed=seed)
    del made["clients"][next(iter(made["clients"]))]
    return made | {"name": f"group-{seed}"} | changes


PROBLEMS = [problem(seed) for seed in range(3)]


@pytest.fixture
def table(spark):
    """Groups as a table with two columns of the caller's."""
    states = [(given["name"], read_problem(given).state) for given in PROBLEMS]
    rows = pa.Table.from_batches([group_batch(states)])
    numbers = range(len(states))
    teams = pa.array([f"team-{number}" for number in numbers])
    costs = pa.array(list(numbers), pa.int32())
    rows = rows.append_column("owner.team", teams).append_column("cost", costs)
    return spark.createDataFrame(rows)


def settings_of(spark):
    return dict(spark.conf.getAll)


def assert_as_the_core(rows, strategy="high_availability"):
    found = {row.name: row for row in rows}
    for given in PROBLEMS:
        state = read_problem(given).state
        assignment, trace = run_with_trace(state, named_strategy(strategy))
        row = found.pop(given["name"])
        index = {str(task): number for number, task in enumerate(state.tasks)}
        active = {
            index[task]: client for client, held in row.clients.items() for task in held.active
        }
        assert active == {t: state.clients[c] for t, c in enumerate(assignment.active.tolist())}
        assert row.measures.asDict() == asdict(measures_of(state, assignment, trace))
    assert found == {}


def test_rows_are_placed_and_measured_as_by_the_core_and_nothing_else_changes(spark, table):
    before = settings_of(spark)
    placed = place(table, keep=["owner.team", "cost"])
    assert placed.columns == ["owner.team", "cost", *place_schema().names]
    assert DataType.fromDDL(ddl_of(place_schema())) == place_schema()
    rows = placed.collect()
    assert_as_the_core(rows)
    assert {row.name: (row["owner.team"], row.cost) for row in rows} == {
        f"group-{n}": (f"team-{n}", n) for n in range(3)
    }
    assert all(row.reject is None and row.assignor == "high_availability" for row in rows)
    assert settings_of(spark) == before


def test_names_of_columns_match_as_in_spark(spark, table):
    renamed = table.toDF(*[name.title() for name in table.columns])
    placed = place(renamed, keep=["COST"])
    assert placed.columns[0] == "COST"
    rows = placed.collect()
    assert_as_the_core(rows)
    assert {row.name: row.COST for row in rows} == {f"group-{n}": n for n in range(3)}
    with pytest.raises(BadTable, match="columns Name and name have one name for Spark"):
        place(renamed.withColumnRenamed("Cost", "name"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(BadTable, match="column cost to keep is missing"):
            place(table.withColumnRenamed("cost", "Cost"), keep=["cost"])
        with pytest.raises(BadTable, match=r"column name \(string\) is missing"):
            place(renamed)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_invalid_group_fails_the_query_or_has_its_reason_in_its_row(spark):
    lines = [json.dumps(PROBLEMS[0]), "{broken", json.dumps(problem(7, clients={}))]
    texts = spark.createDataFrame(
        [(n, line) for n, line in enumerate(lines)], "id int, line string"
    )
    with pytest.raises(PythonException) as failure:
        place(texts, problem="line", partitions=1).collect()
    assert "BadTable: group without a name: column value is {broken" in str(failure.value)
    assert "(on_error='reject' places the others)" in str(failure.value)
    rows = place(texts, problem="line", keep=["id"], on_error="reject").orderBy("id").collect()
    assert [row.id for row in rows] == [0, 1, 2]
    assert [row.reject is None for row in rows] == [True, False, False]
    assert sorted(rows[1].reject.asDict()) == ["column", "reason", "value"]
    assert "no clients" in rows[2].reject.reason
    assert rows[2].measures is None
    assert rows[2].clients == {}


def test_function_and_settings_reach_the_workers(spark, table):
    def everything_on_the_first(state):
        active = state.owner.copy()
        active[:] = 0
        return TaskAssignment(active=active)

    placed = place(table, strategy=everything_on_the_first, config={"num.standby.replicas": 0})
    row = placed.where("name = 'group-1'").collect()[0]
    assert row.assignor == "everything_on_the_first"
    state = read_problem(PROBLEMS[1]).state
    assert validate(state, everything_on_the_first(state)) == ()
    assert len(row.clients[state.clients[0]].active) == 12
    assert row.measures.balance_after == 3.0
    assert row.measures.worth < 0


WRONG = {
    "keep missing": (
        {"keep": ["nothing"]},
        BadTable,
        r"column nothing to keep is missing \(its columns: name, config, tasks, clients",
    ),
    "keep collides": (
        {"keep": ["clients"]},
        BadTable,
        "column clients cannot be kept",
    ),
    "keep is text": ({"keep": "cost"}, BadTable, r"give a list of columns, as keep=\['cost'\]"),
    "keep is a column": ({"keep": [1]}, BadTable, "has values that are no texts; give names"),
    "problem is no text": ({"problem": 5}, BadTable, "problem=5 is no text; give the name of a"),
    "no partition": ({"partitions": 0}, BadTable, "partitions=0 is refused: give a whole number"),
    "no table": ({"groups": [1]}, BadTable, "groups is list; give a DataFrame of Spark"),
    "problem missing": ({"problem": "x"}, BadTable, "the table of groups: column x is missing"),
    "problem is a number": (
        {"problem": "cost"},
        BadTable,
        "column cost is int, it must be string",
    ),
    "strategy": ({"strategy": "stiky"}, ConfigError, "did you mean sticky"),
    "setting": ({"config": {"no.such": 1}}, ConfigError, "unknown setting no.such"),
    "on_error": ({"on_error": "skip"}, ConfigError, "give 'fail' or 'reject'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_fail_at_once(table, what):
    arguments, kind, sentence = WRONG[what]
    with pytest.raises(kind, match=sentence):
        place(**{"groups": table} | arguments)


def test_errors_about_columns_have_the_whole_type(spark):
    rows = spark.createDataFrame([("g", "0_0")], "name string, tasks string")
    with pytest.raises(BadTable) as failure:
        place(rows)
    whole = group_schema()["clients"].dataType.simpleString()
    assert f"column clients ({whole}) is missing" in str(failure.value)
    assert "..." not in str(failure.value)


def test_the_package_offers_its_functions_without_importing_spark_first():
    assert all(hasattr(spark_assign, name) for name in spark_assign.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = spark_assign.nothing
