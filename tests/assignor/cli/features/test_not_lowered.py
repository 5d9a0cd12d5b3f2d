"""`assignor features downgrade-topology` fails and says why, if it cannot lower the memory."""

import json

import pytest
from click.testing import CliRunner

from assignor.adapters.admin import ReachedTopic, open_admin
from assignor.adapters.admin.client import Target
from assignor.adapters.admin.compacted_topic import CompactedTopic
from assignor.cli import main
from assignor.embedding import ProcessDirectory
from assignor.examples.topologies import FIRST, SECOND
from assignor.levels import FolderLevels
from assignor.levels.log import LogFormat, format_log, reached_topic_name
from assignor.stores import FolderDisk, StoreError, read_reached, write_reached
from assignor.topology import content_fingerprint
from probing.topologies import HIGHEST_EPOCH, Reached
from system_tests.broker import running_broker

FORMS = [content_fingerprint(t.subtopologies("g")[0]) for t in (FIRST, SECOND)]


def memory(epoch, version):
    return dict.fromkeys(FORMS, Reached(epoch, version))


def downgrade(*options, application_id="g"):
    command = ["features", "downgrade-topology", "--topology", "assignor.examples.topologies:FIRST"]
    command += ["--application-id", application_id, "--yes", *map(str, options)]
    return CliRunner().invoke(main, command)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def state_directory(folder, remembered):
    directory = ProcessDirectory(folder)
    directory.remember_reached(remembered)
    directory.close()
    return folder


@pytest.fixture
def log(tmp_path):
    format_log(FolderDisk(tmp_path), LogFormat(log_id="a", levels={}, at_ms=1))
    return tmp_path


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--format", "json"]])
def test_after_the_highest_epoch_nothing_can_be_lowered(log, options):
    highest = memory(HIGHEST_EPOCH - 1, 2)
    FolderLevels(log).remember_reached(highest)
    found = downgrade("--directory", log, *options)
    assert (found.exit_code, found.stdout) == (1, "")
    assert "there is no later one; nothing is changed" in found.stderr
    assert FolderLevels(log).reached() == highest
    state = state_directory(log / "state", highest)
    assert downgrade("--state-dir", state, *options).exit_code == 1
    assert read_reached(state) == highest


def test_a_file_with_an_epoch_that_no_leader_believes_is_damaged(tmp_path):
    write_reached(tmp_path, memory(HIGHEST_EPOCH, 2))
    with pytest.raises(StoreError, match="has no valid memory of topologies"):
        read_reached(tmp_path)


@pytest.mark.parametrize("racing", [Reached(4, 3), Reached(5, 2)])
def test_a_leader_that_writes_between_reading_and_writing_is_named(log, monkeypatch, racing):
    FolderLevels(log).remember_reached(memory(3, 2))
    remember = FolderLevels.remember_reached

    def after_a_leader(levels, lowered):
        remember(levels, {FORMS[1]: racing})
        remember(levels, lowered)

    monkeypatch.setattr(FolderLevels, "remember_reached", after_a_leader)
    found = downgrade("--directory", log, "--format", "json")
    assert (found.exit_code, found.stdout) == (1, "")
    assert f"remembers version {racing.version} in epoch {racing.epoch} after" in found.stderr
    assert "run the command again" in found.stderr
    monkeypatch.undo()
    found = downgrade("--directory", log, "--format", "json")
    assert (found.exit_code, json.loads(found.stdout)["changed"]) == (0, True)


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_directory_without_a_process_or_a_memory_is_no_place_and_stays_as_it_is(
    tmp_path, options
):
    found = downgrade("--state-dir", tmp_path, *options)
    assert (found.exit_code, "is no state directory" in found.stderr) == (1, True)
    assert files(tmp_path) == {}
    state_directory(tmp_path, {})
    before = files(tmp_path)
    found = downgrade("--state-dir", tmp_path, *options)
    assert (found.exit_code, "remembers nothing" in found.stderr) == (1, True)
    assert "reached-topologies" not in files(tmp_path)
    assert not options or files(tmp_path) == before


def test_a_dry_run_in_a_state_directory_writes_nothing(tmp_path):
    state_directory(tmp_path, memory(3, 2))
    (tmp_path / "persistent-version").unlink(missing_ok=True)
    before = files(tmp_path)
    found = downgrade("--state-dir", tmp_path, "--dry-run")
    assert (found.exit_code, "would remember version 1 in epoch 4" in found.stdout) == (0, True)
    assert files(tmp_path) == before


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_topology_that_the_place_does_not_remember_changes_nothing(tmp_path, options):
    state_directory(tmp_path, memory(3, 2))
    found = downgrade("--state-dir", tmp_path, *options, application_id="other")
    assert (found.exit_code, found.stdout) == (1, "")
    assert "remembers no subtopology" in found.stderr
    assert "with application id other; nothing is changed" in found.stderr
    assert read_reached(tmp_path) == memory(3, 2)


@pytest.mark.usefixtures("clock")
def test_a_topic_with_a_record_of_a_later_layout_is_read_and_not_written():
    with running_broker() as broker:
        servers = broker.bootstrap_servers[0]
        where = ["--group", "g", "--bootstrap-server", servers, "--timeout", "60"]
        with open_admin(Target(servers=(servers,), settings={}, timeout_ms=60_000)) as admin:
            topic, reached = (
                CompactedTopic(admin, reached_topic_name("g")),
                ReachedTopic(admin, "g"),
            )
            reached.remember(memory(3, 2))
            topic.write([(b"later", b"\x81\xaereadable_since\x02")])
            records = topic.records()
            found = downgrade(*where)
            assert found.exit_code == 1
            assert "g-reached-topologies is not changed: record 1 with key later" in found.stderr
            assert reached.look().memory == memory(3, 2)
            with pytest.raises(StoreError, match="write its key without a value"):
                reached.remember(memory(4, 2))
            assert topic.records() == records
            topic.write([(b"later", None)])
            found = downgrade(*where, "--wait", "60")
            assert found.exit_code == 0
            assert "it has no members that could learn it" in found.stdout
            assert reached.look().memory == memory(4, 1)
