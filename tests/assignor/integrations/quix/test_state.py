"""Copies of stores on disk, and how far they are."""

import pytest
from quixstreams.state.rocksdb import RocksDBStore

from assignor import TaskId, TopicPartition, Topology
from assignor.integrations.quix.state import QuixState, following_offset

CHANGELOG = "changelog__app--words--default"
OTHER = "changelog__app--words--window"
TASK = TaskId(0, 1)


@pytest.fixture
def stores(tmp_path):
    return {
        "words": {
            name: RocksDBStore(name, "words", base_dir=str(tmp_path))
            for name in ("default", "window")
        }
    }


def state_of(stores):
    topology = (
        Topology()
        .add_source("words", topics=["words"])
        .add_processor("count", parents=["words"])
        .add_state_store("default", processors=["count"], changelog_topic=CHANGELOG)
        .add_state_store("window", processors=["count"], changelog_topic=OTHER)
    )
    names = {"words": {"default": CHANGELOG, "window": OTHER}}
    return QuixState(stores, names, topology.subtopologies("app"))


def opened(stores, name, offset):
    store = stores["words"][name].assign_partition(1)
    store.write_changelog_offset(offset)
    return store


def test_copies_of_former_runs_are_found_with_the_next_record_that_they_need(stores):
    for name, offset in (("default", 41), ("window", 6)):
        opened(stores, name, offset)
        stores["words"][name].revoke_partition(1)
    state = state_of(stores)
    assert state.offset_sums() == {}
    state.find()
    assert state.offset_sums() == {TASK: 42 + 7}


def test_a_folder_that_is_no_database_is_no_copy(stores, tmp_path, caplog):
    (tmp_path / "default" / "words" / "1").mkdir(parents=True)
    (tmp_path / "default" / "words" / "1" / "CURRENT").write_text("MANIFEST-9\n", encoding="utf-8")
    (tmp_path / "default" / "words" / "notes").mkdir()
    state = state_of(stores)
    with caplog.at_level("INFO"):
        state.find()
    assert state.offset_sums() == {}
    assert "is not counted" in caplog.text


def test_a_database_that_is_open_is_asked_itself(stores):
    store = opened(stores, "default", 9)
    state = state_of(stores)
    state.note_open([TASK])
    assert state.offset_sums() == {TASK: 10}
    assert following_offset(store) == 10
    state.note(TopicPartition(CHANGELOG, 1), None)
    assert state.offset_sums() == {}


def test_a_copy_has_the_files_of_the_store_and_produces_nothing(stores):
    state = state_of(stores)
    copies = state.copies(TASK)
    assert sorted(copies) == [TopicPartition(CHANGELOG, 1), TopicPartition(OTHER, 1)]
    copy = copies[TopicPartition(CHANGELOG, 1)]
    copy.assign_partition(1).write_changelog_offset(3)
    copy.revoke_partition(1)
    assert stores["words"]["default"].partitions == {}
    assert following_offset(stores["words"]["default"].assign_partition(1)) == 4


def test_tasks_inputs_and_changelogs_belong_together(stores):
    state = state_of(stores)
    inputs = [TopicPartition("words", 1), TopicPartition(CHANGELOG, 1)]
    assert state.tasks(inputs) == {TASK}
    assert state.inputs(TASK) == (TopicPartition("words", 1),)
    assert state.changelogs([TASK]) == (
        TopicPartition(CHANGELOG, 1),
        TopicPartition(OTHER, 1),
    )
