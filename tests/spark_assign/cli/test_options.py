"""Options and help of `spark-assign`, messages for errors of Spark, and missing Java."""

import os
import stat

import pytest
from click.testing import CliRunner

from assignor import ConfigError
from spark_assign.cli.batch import SMALL_BYTES, small_note
from spark_assign.cli.main import main
from spark_assign.cli.options import frozen_settings, sentence_of
from spark_assign.cli.session import find_java, session
from spark_assign.tables import Groups, guarded
from spark_assign.tables.errors import SparkUnavailable
from spark_assign.whatif.report import page_of, short

COMMANDS = ("batch", "compare", "group", "simulate", "whatif")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert f"spark-assign {name} " in result.stdout
    assert "Exit status" in result.stdout


def test_help_of_the_group_names_every_command():
    listed = CliRunner().invoke(main, ["--help"]).stdout
    assert all(f"  {name} " in listed for name in COMMANDS)


def option_of(name, option):
    command = main.get_command(None, name)
    [found] = [parameter for parameter in command.params if option in parameter.opts]
    return found.to_info_dict()


def test_batch_and_group_declare_on_error_alike():
    assert option_of("batch", "--on-error") == option_of("group", "--on-error")


@pytest.mark.parametrize("option", ["--config", "--in-format", "--out", "--overwrite", "--format"])
def test_commands_that_share_an_option_declare_it_alike(option):
    first, *others = (option_of(name, option) for name in ("batch", "group", "whatif"))
    assert others == [first, first]


MESSAGES = {
    "[PATH_NOT_FOUND] Path does not exist: file:/data/in.parquet. SQLSTATE: 42K03": (
        "there is no /data/in.parquet; give a file, a directory or a glob",
        2,
    ),
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file hdfs://n:1/a b": (
        "hdfs://n:1/a does not have the format of its name (truncated?); write it again",
        2,
    ),
    "java.io.IOException: No space left on device": (
        (
            "the disk of --out, or that of spark.local.dir, is full, or a quota or a limit of file "
            "sizes is reached; free space, raise the limit, or give another disk"
        ),
        3,
    ),
    "[PYTHON] Traceback:\n  File x\nassignor.problem.ProblemError: name is 3; give text\n": (
        "name is 3; give text",
        2,
    ),
    "[PYTHON] Traceback:\n  File x\nKeyError: 'x'\n": ("Spark failed: KeyError: 'x'", 3),
    "An error occurred while calling o3.save.\n: A: b\nCaused by: C: d\nCaused by: E: f\n\tat g": (
        "Spark failed: E: f",
        3,
    ),
    "something new\nwith a second line": ("Spark failed: something new", 3),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_an_error_of_spark_becomes_one_sentence(text):
    assert sentence_of(text) == MESSAGES[text]


def test_settings_are_values_and_lists_can_be_keys():
    given = ("num.standby.replicas=2", "rack.aware.assignment.tags=zone,cluster")
    assert frozen_settings(given) == (
        ("num.standby.replicas", 2),
        ("rack.aware.assignment.tags", ("zone", "cluster")),
    )
    with pytest.raises(ConfigError, match="write KEY=VALUE"):
        frozen_settings(("x",))


def fake_java(tmp_path, version):
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return str(java)


@pytest.mark.usefixtures("clock")
def test_java_home_is_used_and_must_be_new_enough(tmp_path, monkeypatch):
    java = fake_java(tmp_path, "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java
    for old in ("1.8.0_392", "11.0.2"):
        (tmp_path / "bin" / "java").unlink()
        (tmp_path / "bin").rmdir()
        fake_java(tmp_path, old)
        with pytest.raises(SparkUnavailable, match="Spark needs 17 or newer"):
            find_java()


def test_without_java_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="install Java 17 or newer"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SparkUnavailable, match="JAVA_HOME is /nowhere and has no bin/java"):
        find_java()


def test_invalid_driver_memory_is_an_error_before_spark_starts(monkeypatch):
    monkeypatch.setattr("spark_assign.cli.session.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if "GATEWAY" not in k})
    with pytest.raises(SparkUnavailable, match="is not a size"):
        session("x", driver_memory="lots")


def test_numbers_are_short():
    assert [short(n) for n in (0, 3.14159, 42.4, 1834, 25_000, 2.46e9)] == [
        *("0", "3.1", "42"),
        *("1.8k", "25k", "2.5G"),
    ]


def test_page_has_every_scenario_and_needs_no_network():
    names = "handoffs restores restored_records outage_ms converge_ms rounds load_max"
    row = {
        f"{n}_{k}": 1.0 for n in [*names.split(), "active_cross_rack"] for k in ("mean", "worst")
    }
    page = page_of([row | {"scenario": "lose-rack"}, dict.fromkeys(row) | {"scenario": "add:7"}])
    assert "lose-rack" in page
    assert "add:7" in page
    assert 'src="http' not in page


def test_little_input_is_told_which_command_is_faster():
    def lines(size):
        return Groups(frame=None, is_text=True, path="g.jsonl", sizes={"a": size, "b": 1})

    note = small_note(lines(7 << 20), cores=2)
    assert note.startswith("g.jsonl has 7.0 MB; on one machine, below about ")
    assert "`assignor assign --problem FILE --format json --workers 2`" in note
    assert small_note(lines(SMALL_BYTES - 1), cores=2) is None
    assert small_note(Groups(frame=None, is_text=False), cores=2) is None


def test_a_worker_without_memory_names_the_group_and_an_option():
    def fail():
        raise MemoryError

    with pytest.raises(MemoryError, match=r"^group orders needs more memory.*--cores") as caught:
        guarded("orders", fail)
    sentence, status = sentence_of(f"Traceback\nMemoryError: {caught.value}\n")
    assert (sentence, status) == (str(caught.value), 3)
