"""The thread that follows changelogs, on the embedded broker and real RocksDB stores."""

import json
import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from quixstreams.state.metadata import (
    CHANGELOG_CF_MESSAGE_HEADER,
    CHANGELOG_PROCESSED_OFFSETS_MESSAGE_HEADER,
)
from quixstreams.state.rocksdb import RocksDBOptions, RocksDBStore

from assignor import TaskId, TopicPartition, Topology
from assignor.integrations.quix import standbys
from assignor.integrations.quix.standbys import StandbyFollower
from assignor.integrations.quix.state import QuixState, following_offset
from system_tests.broker import BrokerConfig, running_broker

CHANGELOG = "changelog"
TASK = TaskId(0, 1)
LIMIT_S = 120


class Group:
    """The changelog and the commits of a group that has a task, and a follower of that task."""

    def __init__(self, servers, folder):
        self.settings = {"bootstrap.servers": servers, "group.id": "app"}
        options = RocksDBOptions(open_max_retries=0)
        self.store = RocksDBStore("default", "words", base_dir=str(folder), options=options)
        topology = (
            Topology()
            .add_source("words", topics=["words"])
            .add_processor("count", parents=["words"])
            .add_state_store("counts", processors=["count"], changelog_topic=CHANGELOG)
        )
        self.state = QuixState(
            {"words": {"default": self.store}},
            {"words": {"default": CHANGELOG}},
            topology.subtopologies("app"),
        )
        self.follower = StandbyFollower(self.settings, self.state)
        self._producer = Producer({"bootstrap.servers": servers})

    def write(self, key, value, *, of_input):
        headers = {CHANGELOG_CF_MESSAGE_HEADER: "default"}
        if of_input is not None:
            headers[CHANGELOG_PROCESSED_OFFSETS_MESSAGE_HEADER] = json.dumps({"words": of_input})
        self._producer.produce(CHANGELOG, value, key, partition=1, headers=headers)
        assert self._producer.flush(LIMIT_S) == 0

    def commit(self, offset):
        consumer = Consumer(self.settings)
        consumer.commit(offsets=[Position("words", 1, offset)], asynchronous=False)
        consumer.close()

    def until(self, holds):
        end = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < end, (self.state.offset_sums(), self.follower.applied)
            time.sleep(0.02)

    def has_read(self, records):
        self.until(lambda: self.state.offset_sums() == {TASK: records})

    def content(self):
        """What Quix finds when it opens the store."""
        opened = self.store.assign_partition(1)
        found = {key: opened.get(key) for key in (b"a", b"b")}
        following = following_offset(opened)
        self.store.revoke_partition(1)
        return {key: value for key, value in found.items() if isinstance(value, bytes)}, following


@pytest.fixture
def group(tmp_path, clock):
    with running_broker(BrokerConfig(topics={"words": 4, CHANGELOG: 4})) as broker:
        group = Group(broker.bootstrap_servers[0], tmp_path)
        yield group
        group.follower.close()


def test_a_standby_has_what_is_committed_and_gives_its_files_up_at_once(group):
    group.write(b"a", b"1", of_input=0)
    group.write(b"b", b"1", of_input=1)
    group.commit(2)
    group.follower.follow([TASK])
    group.has_read(2)
    group.follower.follow([])
    assert group.content() == ({b"a": b"1", b"b": b"1"}, 2)


def test_a_record_whose_input_is_not_committed_waits_with_all_that_follow(group):
    group.write(b"a", b"1", of_input=0)
    group.write(b"a", b"2", of_input=5)
    group.write(b"b", b"1", of_input=0)
    group.commit(1)
    group.follower.follow([TASK])
    group.has_read(1)
    group.commit(6)
    group.has_read(3)
    group.follower.follow([])
    assert group.content() == ({b"a": b"2", b"b": b"1"}, 3)


def test_records_of_old_releases_name_no_input_and_are_applied(group):
    group.write(b"a", b"1", of_input=None)
    group.follower.follow([TASK])
    group.has_read(1)


def test_a_copy_that_holds_many_records_pauses_its_changelog_until_they_are_committed(
    group, monkeypatch
):
    monkeypatch.setattr(standbys, "_HELD_MOST", 2)
    for number in range(6):
        group.write(b"a", b"%d" % number, of_input=number)
    group.follower.follow([TASK])
    group.until(lambda: any(held.is_paused for held in group.follower._open.values()))
    group.commit(6)
    group.has_read(6)
    assert not any(held.is_paused for held in group.follower._open.values())


def test_a_copy_goes_on_where_it_was(group):
    group.write(b"a", b"1", of_input=0)
    group.commit(9)
    group.follower.follow([TASK])
    group.has_read(1)
    group.follower.follow([])
    group.write(b"b", b"1", of_input=1)
    group.follower.follow([TASK])
    group.has_read(2)
    assert group.follower.applied == 2


def test_a_restored_copy_leaves_no_list_of_its_keys(group):
    group.write(b"a", b"1", of_input=0)
    group.commit(9)
    group.follower.follow([TASK])
    group.until(lambda: any(held.is_restored for held in group.follower._open.values()))
    group.write(b"b", b"1", of_input=1)
    group.has_read(2)
    group.follower.follow([])
    opened = group.store.assign_partition(1)
    assert "__ttl_backfill_pending__" not in opened.list_column_families()


def test_a_copy_of_a_changelog_that_was_created_anew_is_built_again(group, caplog):
    opened = group.store.assign_partition(1)
    opened.write_changelog_offset(100)
    group.store.revoke_partition(1)
    group.write(b"a", b"1", of_input=None)
    group.follower.follow([TASK])
    group.has_read(1)
    assert "changelog-1 begins anew" in caplog.text
    group.follower.follow([])
    assert group.content() == ({b"a": b"1"}, 1)


def test_a_store_that_cannot_be_opened_is_left_alone_and_tried_again_later(group, caplog):
    group.write(b"a", b"1", of_input=None)
    group.store.assign_partition(1)  # the application has it open
    group.follower.follow([TASK])
    group.until(lambda: "changelog-1 is not followed" in caplog.text)
    assert group.state.offset_sums() == {}
    group.store.revoke_partition(1)
    group.follower.follow([])
    group.follower.follow([TASK])
    group.has_read(1)


def test_a_thread_that_fails_closes_its_copies_and_nobody_waits_for_it(group, monkeypatch, caplog):
    group.write(b"a", b"1", of_input=None)
    group.follower.follow([TASK])
    group.has_read(1)

    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(group.follower, "_apply", broken)
    group.write(b"b", b"1", of_input=None)
    group.until(lambda: group.follower._ended)
    assert "standbys are not followed any more" in caplog.text
    group.follower.follow([])
    assert group.content() == ({b"a": b"1"}, 1)


def test_a_follower_without_tasks_has_no_thread(group):
    group.follower.follow([])
    assert group.follower._thread.ident is None
    assert group.state.copies(TaskId(0, 3)).keys() == {TopicPartition(CHANGELOG, 3)}
