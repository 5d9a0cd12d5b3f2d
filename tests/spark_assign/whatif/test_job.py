"""`spark-assign whatif`: a row for each case, a summary, a page."""

import json

from click.testing import CliRunner

from assignor import read_problem
from assignor.cli import make_problem
from assignor.placement import find_strategy
from spark_assign.cli.main import main
from spark_assign.whatif.measures import measures
from spark_assign.whatif.scenarios import case_of, parse_scenarios, subjects


def test_rows_are_those_of_one_machine_and_the_summary_adds_them_up(spark, tmp_path):
    problems = [make_problem(clients=4, tasks=20, standbys=1, racks=2, seed=s) for s in (1, 2)]
    problems = [problem | {"name": f"group-{number}"} for number, problem in enumerate(problems)]
    (tmp_path / "groups.jsonl").write_text("\n".join(map(json.dumps, problems)), encoding="utf-8")
    words = "lose-client,lose-rack,add:1,config:num.standby.replicas=0"
    arguments = ["--in", f"{tmp_path}/groups.jsonl", "--out", f"{tmp_path}/out"]
    result = CliRunner().invoke(
        main, ["whatif", *arguments, "--scenarios", words, "--format", "json"]
    )
    assert result.exit_code == 0, result.stderr
    rows = [row.asDict() for row in spark.read.parquet(f"{tmp_path}/out").collect()]
    found = {(row["name"], row["scenario"], row["subject"]): row for row in rows}
    strategy, count = find_strategy("high_availability"), 0
    for problem in problems:
        state = read_problem(problem).state
        for scenario in parse_scenarios((words,)):
            for subject in subjects(scenario, state):
                count += 1
                row = found[problem["name"], str(scenario), subject]
                expected = measures(case_of(scenario, subject, state, strategy))
                assert {key: row[key] for key in expected} == expected
    assert len(rows) == count == 2 * (1 + 4 + 2 + 1 + 1)
    summary = {row["scenario"]: row for row in json.loads(result.stdout)["scenarios"]}
    lost = [row["restores"] for row in rows if row["scenario"] == "lose-rack"]
    assert summary["lose-rack"]["restores_worst"] == max(lost)
    assert summary["lose-rack"]["restores_mean"] == sum(lost) / len(lost)
    assert "lose-rack" in (tmp_path / "out" / "_report.html").read_text(encoding="utf-8")


def test_impossible_cases_are_counted_apart(spark, tmp_path):
    problem = make_problem(clients=1, tasks=4, seed=3)
    (tmp_path / "groups.jsonl").write_text(json.dumps(problem), encoding="utf-8")
    arguments = ["--in", f"{tmp_path}/groups.jsonl", "--out", f"{tmp_path}/out"]
    result = CliRunner().invoke(main, ["whatif", *arguments, "--scenarios", "lose-client"])
    assert result.exit_code == 1
    assert "1 of 1 cases are impossible: no client would be left" in result.stdout
    wrong = CliRunner().invoke(main, ["whatif", *arguments, "--scenarios", "explode"])
    assert wrong.exit_code == 2
    assert "unknown scenario explode" in wrong.stderr
