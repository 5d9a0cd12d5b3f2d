"""Without Java the tests of the job are skipped with one sentence; in CI they fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NEEDS_SPARK = "tests/spark_assign/batch/test_job.py::test_wrong_usage_is_one_sentence"
SENTENCE = "Spark tests need Java: JAVA_HOME is not set and PATH has no bin/java; install Java 17"

pytestmark = pytest.mark.usefixtures("clock")


@pytest.mark.usefixtures("clock")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("environment", "status", "sentences"),
    [
        ({}, pytest.ExitCode.OK, ("1 skipped", SENTENCE)),
        ({"CI": "true"}, pytest.ExitCode.TESTS_FAILED, ("1 error", "install Java 17 or newer")),
    ],
)
def test_tests_of_the_job_are_skipped_or_fail_in_ci(tmp_path, environment, status, sentences):
    bare = {key: value for key, value in os.environ.items() if key not in ("CI", "JAVA_HOME")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", NEEDS_SPARK],
        cwd=ROOT,
        env=bare | {"PATH": str(tmp_path), "COLUMNS": "300"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert [text for text in sentences if done.stdout.count(text) != 1] == []
