"""`assignor features downgrade-topology`: the memory in a state directory is lowered."""

import json

from click.testing import CliRunner

from assignor.cli import main
from assignor.embedding import ProcessDirectory
from assignor.examples.topologies import FIRST, SECOND
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
        {"version": 1, "epoch": 4, "forms": 2},
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


def test_an_unknown_topology_is_wrong_usage(tmp_path):
    assert downgrade(tmp_path, name="NONE").exit_code == 2
