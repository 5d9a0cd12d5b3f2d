"""What a command shows while Spark runs, and that it leaves the session as it was."""

import re
import time

import pytest
from click.testing import CliRunner

from spark_assign.cli.main import main
from spark_assign.cli.options import job
from spark_assign.cli.progress import progress
from spark_assign.tables import current_step, step

GIVEN = {"cores": None, "driver_memory": None, "conf": ()}


def descriptions(spark):
    """Job id -> description, as Spark's UI has them."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = (jobs.apply(number) for number in range(jobs.size()))
    texts = ((job.jobId(), job.description()) for job in found)
    return {number: text.get() if text.isDefined() else None for number, text in texts}


def test_lines_name_the_step_and_its_tasks_off_a_terminal(spark, monkeypatch, tmp_path):
    lines, are_enough = [], tmp_path / "two lines"

    def say_line(program, text):
        lines.append(f"{program}: {text}")
        if len(lines) == 2:
            are_enough.touch()

    def wait(batches):
        for batch in batches:
            while not are_enough.exists():
                time.sleep(0.05)
            yield batch

    monkeypatch.setattr("spark_assign.cli.progress.LINE_EVERY_S", 0.1)
    monkeypatch.setattr("spark_assign.cli.progress.say", say_line)
    with step(spark, "test: wait"), progress(spark):
        assert current_step(spark) == "test: wait"
        spark.range(3, numPartitions=3).mapInArrow(wait, "id long").collect()
    assert current_step(spark) == ""
    pattern = re.compile(r"spark-assign: test: wait, [0-3] of 3 Spark tasks, \d+ s")
    assert [line for line in lines if not pattern.fullmatch(line)] == []
    assert len(lines) >= 2


def test_jobs_are_described_by_step_and_command(spark):
    before = set(descriptions(spark))
    spark.sparkContext.setJobDescription("the caller's")
    try:
        with job("batch", GIVEN) as own:
            own.range(2).count()
            with step(own, "batch: a step"):
                own.range(2).count()
            own.range(2).count()
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "the caller's"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    found = [text for number, text in sorted(descriptions(spark).items()) if number not in before]
    assert set(found) == {"batch", "batch: a step"}
    assert (found[0], found[-1]) == ("batch", "batch")


def test_settings_of_the_session_are_as_before(spark):
    before = dict(spark.conf.getAll)
    given = {**GIVEN, "conf": ("spark.sql.shuffle.partitions=7", "spark.sql.ansi.enabled = false")}
    with job("batch", given) as own:
        assert own.conf.get("spark.sql.shuffle.partitions") == "7"
        assert own.conf.get("spark.sql.ansi.enabled") == "false"
        own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "3")
    assert dict(spark.conf.getAll) == before


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("spark.executor.memory=9g", "--conf spark.executor.memory cannot be changed while Spark"),
        ("num.standby.replicas=1", "write spark.KEY=VALUE, and settings of assignment as --config"),
        ("spark.sql.ansi.enabled", "is not a setting of Spark"),
    ],
)
def test_settings_that_cannot_be_made_are_named(spark, setting, sentence):
    result = CliRunner().invoke(main, ["compare", "a", "b", "--conf", setting])
    assert result.exit_code == 2
    assert sentence in result.stderr
