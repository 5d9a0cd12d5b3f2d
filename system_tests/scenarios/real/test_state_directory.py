"""Kafka Streams' classes read and write state directories of persistent version 1."""

import json
import subprocess
import sys
from uuid import UUID

import pytest

from assignor.stores import Checkpoint, ProcessRecord, StateStores
from encoding import TaskId, TopicPartition
from probing import NEWEST_KAFKA
from probing.persisted_formats import PersistedSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

ID = UUID("00000000-0000-0000-0000-00000000002a")
TASK = TaskId(0, 0)
OFFSETS = {TopicPartition("app-counts-changelog", 0): 35, TopicPartition("b", 1): -4}


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("3.9.1", marks=pytest.mark.nightly("10 s; every run has the newest release")),
        NEWEST_KAFKA,
    ],
)
def test_kafka_streams_takes_a_native_state_directory_over_and_gives_it_back(tmp_path, release):
    stores = StateStores(tmp_path / "app", PersistedSettings(), now_ms=1)
    stores.write_process(ProcessRecord(process_id=ID, made_at_ms=5, remembered_version=11))
    stores.write_checkpoint(TASK, Checkpoint(offsets=OFFSETS, end_offset_sum=40))
    done = subprocess.run(
        [sys.executable, "-m", "system_tests.support.jvm.state", release, str(tmp_path), "app"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["process_id"] == str(ID)
    assert content["offsets"] == {"app-counts-changelog-0": 35, "b-1": -4}
    assert stores.read_process().process_id == ID
    assert stores.read_checkpoint(TASK).offsets == OFFSETS
