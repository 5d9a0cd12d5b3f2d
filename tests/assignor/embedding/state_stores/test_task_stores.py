"""Stores follow the tasks of a member: opened, restored, updated, given up, removed; and misuse."""

from types import SimpleNamespace

import pytest

from assignor.embedding import (
    ClusterUnavailable,
    DictStore,
    SqliteStore,
    StoreNotHeld,
    StoreReadOnly,
)
from assignor.stores import StoreError
from tests.assignor.embedding.state_stores.logs import (
    CHANGELOGS,
    INPUTS,
    TASK,
    WORDS,
    restored,
)


def test_a_standby_follows_and_takes_over_without_reading_again(cluster, member):
    active, standby = member("one"), member("two", kind=DictStore)
    active.assign()
    standby.assign(active=False)
    active.finish()
    standby.poll()
    assert standby.state() == cluster.expected()
    assert standby.stores.task_offsets() == active.stores.task_offsets()
    assert active.sentences[-1] == "restored tasks: 0_0; 0 changelog records read"
    active.stores.close()
    standby.assign()
    cluster.write("one")
    standby.finish()
    assert standby.state() == restored(cluster) == cluster.expected()
    # Those that it read as a standby do not count.
    assert standby.sentences[-1] == "restored tasks: 0_0; 0 changelog records read"


def test_an_active_task_that_becomes_a_standby_follows_the_new_owner(cluster, member):
    first, second = member("one"), member("two")
    first.assign()
    first.finish()
    first.revoke()
    first.assign(active=False)
    second.assign()
    cluster.write("one", "two")
    second.finish()
    first.poll()
    assert first.state() == cluster.expected()
    with pytest.raises(StoreReadOnly):
        first.stores[TASK][first.words].put("one", 1)


def test_records_that_come_with_a_new_assignment_are_not_lost(cluster, member):
    owner = member()
    owner.assign()
    owner.finish()
    owner.revoke()
    owner.assign()
    cluster.write("till")
    # The client's poll returns them in the call in which the rebalance happened.
    batch = {INPUTS[0]: cluster.input[INPUTS[0]][-1:], INPUTS[1]: []}
    done = owner.stores.process(batch, owner.count)
    assert done == {INPUTS[0]: len(cluster.input[INPUTS[0]])}
    assert owner.state() == cluster.expected()


def hold(owner, records=3):
    """Assign the task; poll records that wait for the restore."""
    owner.assign()
    batch = {INPUTS[0]: owner.cluster.input[INPUTS[0]][:records]}
    owner.position[INPUTS[0]] = records
    assert owner.stores.process(batch, owner.count) == {}
    assert owner.stores.waiting == {*INPUTS}


@pytest.mark.parametrize("keeps_position", [True, False])
@pytest.mark.parametrize("polls_between", [True, False])
def test_records_that_wait_for_a_restore_are_not_lost_when_a_rebalance_interrupts_it(
    cluster, member, keeps_position, polls_between
):
    """kafka-python keeps the position of a partition that comes back; others begin as committed."""
    owner = member(restore_s=0.0)
    hold(owner)
    position = dict(owner.position)
    owner.revoke()
    if polls_between:
        owner.stores.process({}, owner.count)
    owner.assign()
    if keeps_position:
        owner.position.update(position)
    owner.finish()
    assert owner.state() == restored(cluster) == cluster.expected()
    assert cluster.committed == {p: len(cluster.input[p]) for p in INPUTS}
    assert owner.stores.unread() == {}


def test_records_that_another_member_processed_meanwhile_do_not_count_again(cluster, member):
    owner, other = member("one", restore_s=0.0), member("two")
    hold(owner)
    owner.revoke()
    other.assign()
    other.finish()
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == cluster.expected()
    assert cluster.committed == {p: len(cluster.input[p]) for p in INPUTS}


def test_records_of_a_task_that_is_not_here_any_more_are_to_be_read_again(cluster, member):
    owner = member(restore_s=0.0)
    hold(owner)
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    assert owner.stores.unread() == {INPUTS[0]: 0}
    assert owner.stores.unread() == {}


def test_a_task_that_moved_away_is_closed_and_its_files_are_kept_for_a_while(
    cluster, member, tmp_path
):
    owner = member()
    owner.assign()
    with pytest.raises(StoreNotHeld, match=r"task 0_0 was assigned and is not restored yet"):
        owner.stores[TASK]
    owner.finish()
    kept = owner.stores[TASK][owner.words]
    position = owner.stores.task_offsets()
    owner.revoke()
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    assert owner.stores.task_offsets() == position
    with pytest.raises(StoreNotHeld, match="its task is not on this member any more"):
        kept.get("one")
    with pytest.raises(StoreNotHeld, match=r"task 0_0 is not on this member; ask a host of"):
        owner.stores[TASK]
    with pytest.raises(StoreNotHeld, match=r"task 0_3 is not on this member"):
        owner.stores.local_state(owner.words, 3)
    assert (tmp_path / "one/0_0/by-word.db").exists()
    owner.stores._local._cleanup_delay_s = 0.0
    owner.stores.process({}, owner.count)
    owner.stores.process({}, owner.count)
    assert not (tmp_path / "one/0_0").exists()
    assert owner.stores.task_offsets() == {}


def test_a_restarted_process_tells_the_leader_what_it_has(cluster, member):
    owner = member()
    owner.assign()
    owner.finish()
    position = owner.stores.task_offsets()
    assert sum(position.values()) == sum(cluster.logs[each].end for each in CHANGELOGS)
    owner.stores.close()
    again = member()
    assert again.stores.task_offsets() == position
    again.assign()
    again.finish()
    assert again.sentences[-1] == "restored tasks: 0_0; 0 changelog records read"


def test_a_file_that_cannot_be_used_is_told_at_the_start_and_raised_when_it_is_needed(
    cluster, member, tmp_path, caplog
):
    owner = member()
    owner.assign()
    owner.finish()
    owner.stores.close()
    (tmp_path / "one/0_0/by-word.db").write_bytes(b"no database" * 100)
    again = member()
    assert "by-word.db is damaged, or no SQLite file" in caplog.text
    again.assign()
    with pytest.raises(StoreError, match=r"by-word\.db is damaged, or no SQLite file"):
        again.poll()
    for file in (tmp_path / "one/0_0").glob("by-word.db*"):
        file.unlink()
    again.finish()
    assert again.state() == cluster.expected()


def test_a_changelog_that_has_deleted_records_is_noticed(cluster, member):
    owner = member(kind=SqliteStore)
    owner.assign()
    owner.finish()
    owner.stores.close()
    for log in cluster.logs.values():
        log.start, log.records = log.end + 3, []
        log.end = log.start
    again = member()
    again.assign()
    again.poll()
    assert again.state() == {"by-word": {}, "by-letter": {}}
    assert not again.stores.waiting


def test_records_wait_until_their_task_is_restored(cluster, member):
    owner = member()
    owner.assign()
    assert owner.stores.waiting == frozenset(INPUTS)
    owner.stores._restore_s = -1.0  # a step at a time
    batch = {INPUTS[0]: cluster.input[INPUTS[0]][:2]}
    assert owner.stores.process(batch, owner.count) == {}
    assert owner.stores.waiting == frozenset(INPUTS)
    assert owner.stores.process({}, owner.count) == {INPUTS[0]: 2}
    assert owner.stores.waiting == frozenset()


def test_partitions_are_merged_by_time(cluster, member):
    owner = member()
    owner.assign()
    owner.poll()
    seen = []
    owner.stores.process(
        {each: cluster.input[each] for each in INPUTS}, lambda record, _: seen.append(record.word)
    )
    assert seen == [*WORDS, *WORDS[:4]]


def test_records_of_confluent_kafka_have_methods(cluster, member):
    owner = member()
    owner.assign()
    owner.poll()
    records = [
        SimpleNamespace(word=word, offset=lambda at=at: at, timestamp=lambda at=at: (1, at))
        for at, word in enumerate(["one", "two"])
    ]
    partition = SimpleNamespace(topic="orders", partition=0)
    hashable = type("Partition", (), vars(partition))
    assert owner.stores.process({hashable: records}, owner.count) == {hashable: 2}
    assert owner.state()["by-word"] == {"one": 1, "two": 1}


def test_a_function_that_raises_is_called_again_for_that_record_and_nothing_is_fetched(
    cluster, member
):
    owner = member()
    owner.assign()
    owner.poll()

    seen = []

    def fail(record, state):
        seen.append(record.word)
        owner.count(record, state)
        if record.word == WORDS[2]:
            raise ZeroDivisionError

    batch = {INPUTS[0]: cluster.input[INPUTS[0]][:3], INPUTS[1]: cluster.input[INPUTS[1]][:3]}
    for given in (batch, {}):
        with pytest.raises(ZeroDivisionError):
            owner.stores.process(given, fail)
        assert owner.state()["by-word"] == dict.fromkeys(WORDS[:2], 1)
        assert owner.stores.waiting == frozenset(INPUTS)
        assert not owner.stores.restoring_tasks()
    assert seen == [*WORDS[:3], WORDS[2]]
    assert owner.stores.process({}, owner.count) == dict.fromkeys(INPUTS, 3)
    assert owner.stores.waiting == frozenset()
    assert owner.state() == restored(cluster)
    assert owner.state()["by-word"] == dict.fromkeys(WORDS[:6], 1)


def test_a_cluster_that_does_not_answer_costs_no_record(cluster, member):
    owner = member()
    owner.assign()
    owner.poll()
    owner.access.broken = ClusterUnavailable("gone")
    batch = {each: cluster.input[each] for each in INPUTS}
    for given in (batch, {}):
        with pytest.raises(ClusterUnavailable):
            owner.stores.process(given, owner.count)
        assert owner.stores.waiting == frozenset(INPUTS)
    owner.access.broken = None
    assert owner.stores.process({}, owner.count) == {
        each: len(cluster.input[each]) for each in INPUTS
    }
    assert owner.state() == restored(cluster) == cluster.expected()


@pytest.mark.parametrize("claims", [True, False], ids=["claim", "commit"])
def test_what_cannot_be_written_is_a_problem_and_a_warning_until_it_is(
    cluster, member, caplog, claims
):
    """In each loop, also one of the application: `process` itself reports."""
    caplog.set_level("INFO", "assignor.embedding.state_stores.copies")
    owner = member()
    owner.assign()
    if not claims:
        owner.poll()
    batch = {each: cluster.input[each] for each in INPUTS}
    for seconds in (10, 20, 40):
        owner.access.broken = ClusterUnavailable(f"changelog c: nothing for {seconds} s; look")
        with pytest.raises(ClusterUnavailable):
            owner.stores.process(batch, owner.count)
        assert owner.stores.work.waits == str(owner.access.broken)
    owner.access.broken = ClusterUnavailable("changelog c does not exist")
    with pytest.raises(ClusterUnavailable):
        owner.stores.process({}, owner.count)
    owner.access.broken = None
    owner.finish()
    assert owner.stores.work.waits == ""
    kept = "what is not processed or committed is kept, and tried again: changelog c"
    assert [(each.levelname, each.message) for each in caplog.records] == [
        ("WARNING", f"{kept}: nothing for 10 s; look"),
        ("WARNING", f"{kept} does not exist"),
        ("INFO", "changelogs and outputs are read and written again"),
    ]


def test_a_large_batch_is_written_in_parts(cluster, member, monkeypatch):
    monkeypatch.setattr("assignor.embedding.state_stores.processing.COMMIT_SIZE", 1)
    owner = member()
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == cluster.expected()
    commits = [record for record in cluster.logs[CHANGELOGS[0]].records if b"commit" in record.key]
    assert len(commits) == 12


def ignore(*_):
    """Process a record without an effect."""


def test_records_without_writes_need_no_commit_record(cluster, member):
    owner = member()
    owner.assign()
    owner.poll()
    ends = {each: cluster.logs[each].end for each in CHANGELOGS}
    batch = {INPUTS[0]: cluster.input[INPUTS[0]]}
    assert owner.stores.process(batch, ignore) == {INPUTS[0]: 6}
    assert {each: cluster.logs[each].end for each in CHANGELOGS} == ends
    # They are not processed twice here.
    assert owner.stores.process(batch, owner.count) == {INPUTS[0]: 6}
    assert owner.state()["by-word"] == {}
