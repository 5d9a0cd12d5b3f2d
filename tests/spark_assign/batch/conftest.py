"""Commands in the session of the tests."""

import pytest
from click.testing import CliRunner

from spark_assign.cli.main import main


@pytest.fixture
def call(spark, tmp_path):
    """Run a command in the session of the tests; @ stands for the folder of the test."""

    def run(*arguments):
        return CliRunner().invoke(main, [a.replace("@", f"{tmp_path}/") for a in arguments])

    return run
