"""`assignor features downgrade-topology`: the memory in a state directory is lowered."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli import main
from assignor.embedding import ProcessDirectory
from assignor.examples.topologies import FIRST, SECOND
from assignor.levels import FolderLevels
from assignor.levels.log import LogFormat, format_log
from assignor.stores import FolderDisk
from assignor.topology import content_fingerprint
from probing.topologies import Reached

[OLD], [NEW] = FIRST.subtopologies("app"), SECOND.subtopologies("app")
FORMS = content_fingerprint(OLD), content_fingerprint(NEW)


def downgrade(folder, *options, name="FIRST"):
    topology = f"assignor.examples.topologies:{name}"
    command = ["features", "downgrade-topology", "--state-dir", str(folder), "--topology", topology]
    return CliRunner().invoke(main, [*command, "--application-id", "app", *options])


def reached(folder):
    directory = ProcessDirectory(folder)
    directory.close()
    return directory.reached


def test_a_state_directory_keeps_the_memory_and_the_command_lowers_it(tmp_path):
    directory = ProcessDirectory(tmp_path)
    directory.remember_reached(dict.fromkeys(FORMS, Reached(3, 2)))
    directory.close()
    assert reached(tmp_path) == dict.fromkeys(FORMS, Reached(3, 2))
    found = downgrade(tmp_path, "--format", "json")
    assert (found.exit_code, json.loads(found.stdout)) == (
        0,
        {"version": 1, "epoch": 4, "forms": 2, "changed": True, "dry_run": False},
    )
    assert reached(tmp_path) == dict.fromkeys(FORMS, Reached(4, 1))


def test_a_directory_in_use_and_a_damaged_memory_are_failures_of_the_environment(tmp_path):
    directory = ProcessDirectory(tmp_path / "a")
    directory.remember_reached(dict.fromkeys(FORMS, Reached(0, 2)))
    directory.close()
    (tmp_path / "a" / "reached-topologies").write_bytes(b"SRREACH1 nonsense")
    found = downgrade(tmp_path / "a")
    assert found.exit_code == 3
    assert "reached-topologies" in found.stderr
    assert "delete it if the other members" in found.stderr


def test_a_feature_log_directory_keeps_the_memory_for_members_that_share_it(tmp_path):
    command = ["features", "downgrade-topology", "--directory", str(tmp_path), "--application-id"]
    command += ["app", "--topology", "assignor.examples.topologies:FIRST", "--yes"]
    found = CliRunner().invoke(main, command)
    assert (found.exit_code, "assignor storage format" in found.stderr) == (1, True)
    format_log(FolderDisk(tmp_path), LogFormat(log_id="a", levels={}, at_ms=1))
    found = CliRunner().invoke(main, command)
    assert (found.exit_code, "keeps no reached versions" in found.stderr) == (1, True)
    FolderLevels(tmp_path).remember_reached(dict.fromkeys(FORMS, Reached(3, 2)))
    found = CliRunner().invoke(main, [*command, "--dry-run"])
    assert (found.exit_code, "would remember version 1 in epoch 4" in found.stdout) == (0, True)
    assert FolderLevels(tmp_path).reached() == dict.fromkeys(FORMS, Reached(3, 2))
    assert CliRunner().invoke(main, command[:-1]).exit_code == 2, "it asks, and this is no terminal"
    assert CliRunner().invoke(main, command).exit_code == 0
    assert FolderLevels(tmp_path).reached() == dict.fromkeys(FORMS, Reached(4, 1))
    found = CliRunner().invoke(main, command)
    assert (found.exit_code, "nothing to lower" in found.stdout) == (0, True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "name one place"),
        (["--group", "g", "--directory", "."], "name one place"),
        (["--directory", "."], "--application-id is missing"),
        (["--directory", ".", "--bootstrap-server", "b:1"], "need --group"),
        (["--directory", ".", "--wait", "1"], "--wait needs --group"),
        (["--group", "g"], "no bootstrap server is given"),
        (["--group", "g", "--wait", "nan"], "--wait nan"),
    ],
)
def test_wrong_combinations_of_options_are_named(options, sentence):
    command = ["features", "downgrade-topology", "--topology", "assignor.examples.topologies:FIRST"]
    found = CliRunner().invoke(main, [*command, *options])
    assert (found.exit_code, sentence in found.stderr) == (2, True)


def test_an_unknown_topology_is_wrong_usage(tmp_path):
    assert downgrade(tmp_path, name="NONE").exit_code == 2
