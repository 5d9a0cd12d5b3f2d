"""Commands without their library end with a sentence that names the extra."""

import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from assignor.cli.toolkit.commands import LazyGroup, Subcommand
from assignor.cli.toolkit.extras import EXTRA_BY_LIBRARY, missing_extra

WITHOUT = """
import sys
for name in {absent!r}:
    sys.modules[name] = None  # as if it were not installed
sys.argv = {argv!r}
from {module} import main
main()
"""


def run_without(absent, module, *arguments):
    code = WITHOUT.format(absent=absent, module=module, argv=["command", *arguments])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("absent", "module", "arguments", "extra"),
    [
        (["kafka"], "system_tests.cli.main", "live --from 3.1 --to native", "kafka"),
        (["kafka"], "system_tests.cli.main", "broker --port 0", "kafka"),
        (["kafka"], "assignor.cli", "inspect --bootstrap-server h:1 --all", "kafka"),
        (
            ["javaproperties"],
            "assignor.cli",
            "features describe --bootstrap-server h:1",
            "kafka",
        ),
        (
            ["aiokafka"],
            "system_tests.cli.main",
            "live --from 3.1 --to native --client mixed",
            "aiokafka",
        ),
        (["pyspark"], "spark_assign.cli.main", "batch --in groups --out plans", "spark"),
    ],
)
def test_a_missing_library_is_one_sentence_that_names_its_extra(absent, module, arguments, extra):
    done = run_without(absent, module, *arguments.split())
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert f"pip install 'streams-rebalance[{extra}]'" in done.stderr


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
def test_reports_of_bounces_need_no_extra(tmp_path):
    file = tmp_path / "x.html"
    words = ["simulate", "--seed", "7", "--report", str(file)]
    done = run_without(["plotly", "plotly.graph_objects"], "system_tests.cli.main", *words)
    assert done.returncode == 0, done.stderr
    assert "<svg" in file.read_text(encoding="utf-8")


def test_a_missing_module_of_the_package_is_a_defect_and_gets_no_advice():
    assert missing_extra(ModuleNotFoundError(name="assignor.gone")) is None
    assert missing_extra(ModuleNotFoundError(name="kafkaesque")) is None
    assert missing_extra(ImportError("cannot import name x")) is None


class _Group(LazyGroup):
    subcommands = {  # noqa: RUF012 a table, never changed
        "gone": Subcommand("assignor.gone", "gone", "Nowhere.")
    }


def test_a_defect_of_the_package_keeps_its_traceback():
    group = _Group("group")
    with pytest.raises(ModuleNotFoundError, match=r"assignor\.gone"):
        group.get_command(click.Context(group), "gone")


def test_completion_leaves_out_what_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(
        _Group.subcommands, "gone", Subcommand("pyspark", "anything", "Not installed.")
    )
    group = _Group("group")
    assert group.get_command(click.Context(group, resilient_parsing=True), "gone") is None


def test_every_extra_that_is_named_exists():
    project = tomllib.loads(
        (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    assert set(EXTRA_BY_LIBRARY.values()) <= set(project["optional-dependencies"])
