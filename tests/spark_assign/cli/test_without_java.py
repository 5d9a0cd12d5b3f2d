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


def outcome(tmp_path, **environment):
    """Exit status and output of a test that needs Spark, where PATH has no java."""
    bare = {key: value for key, value in os.environ.items() if key not in ("CI", "JAVA_HOME")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", NEEDS_SPARK],
        cwd=ROOT,
        env=bare | {"PATH": str(tmp_path), "COLUMNS": "300"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.timeout(900)
def test_tests_of_the_job_are_skipped_with_one_sentence(tmp_path):
    status, output = outcome(tmp_path)
    assert status == pytest.ExitCode.OK, output
    assert "1 skipped" in output
    assert output.count(SENTENCE) == 1


@pytest.mark.timeout(900)
def test_tests_of_the_job_fail_in_ci(tmp_path):
    status, output = outcome(tmp_path, CI="true")
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "1 error" in output
    assert "install Java 17 or newer" in output
