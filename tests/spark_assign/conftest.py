"""One Spark session for all tests; without Java they are skipped with one sentence."""

import os

import pytest

from spark_assign.cli.session import session
from spark_assign.tables.errors import SparkUnavailable


@pytest.fixture(scope="session")
def spark(clock):
    """A local session with two cores, few partitions, no UI."""
    try:
        started = session("tests", cores=2, driver_memory="1g", is_brief=True)
    except SparkUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Spark tests need Java: {error}")
    started.conf.set("spark.sql.shuffle.partitions", "2")
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def no_progress_lines(monkeypatch):
    """Commands that take long on a busy machine print what they print elsewhere."""
    monkeypatch.setattr("spark_assign.cli.progress.LINE_EVERY_S", 3_600)


def pytest_collection_modifyitems(items):
    # Starting Spark and its first job take most of a minute where all cores are busy.
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(900))
