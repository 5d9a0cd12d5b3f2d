"""Tasks that are restoring, and tasks that are suspended until the answer of a rebalance."""

import pytest

from assignor import Topology, TopologyError
from assignor.embedding import (
    JSON,
    TEXT,
    ClusterUnavailable,
    DictStore,
    SqliteStore,
    StoreNotHeld,
    TaskStores,
)
from tests.assignor.embedding.state_stores.logs import (
    CHANGELOGS,
    INPUTS,
    TASK,
    TOPOLOGY,
    WORDS,
    Access,
    Cluster,
    Steps,
    restored,
)

NOTHING_READ = "restored tasks: 0_0; 0 changelog records read"
kinds = pytest.mark.parametrize("kind", [SqliteStore, DictStore])


def suspend(member, *, active=True):
    """A rebalance begins, and takes longer than a poll; return what that poll reads and writes."""
    tasks = {TASK: INPUTS}
    member.stores.on_tasks_revoked(tasks if active else {}, {} if active else tasks)
    before = len(member.steps.names)
    assert member.stores.process({}, member.count) == {}
    # Without a record, these two are calls that do nothing.
    return [name for name in member.steps.names[before:] if name not in {"flush", "appended"}]


def is_open(member):
    """Whether the copy of the task is open, for reading."""
    try:
        member.stores[TASK][member.words].get("one")
    except StoreNotHeld:
        return False
    return True


def owner_epochs(cluster):
    """Epochs of the owners of the records, in the order of a changelog."""
    return [int.from_bytes(r.headers[0][1][:8]) for r in cluster.logs[CHANGELOGS[0]].records]


@kinds
def test_a_task_that_stays_is_neither_closed_nor_read_again(cluster, member, kind):
    owner = member(kind=kind)
    owner.assign()
    owner.finish()
    copy, offsets = owner.stores._copies[TASK], owner.stores.task_offsets()
    words = owner.stores[TASK][owner.words]
    for _ in range(2):  # the answer is late, and the rebalance begins again meanwhile
        assert suspend(owner) == []
        assert words.get("one") == 2
        assert owner.state() == cluster.expected()
        assert owner.stores.task_offsets() == offsets
    owner.assign()
    cluster.write("one")
    owner.finish()
    assert owner.sentences.count(NOTHING_READ) == 1, "when it was taken over"
    assert owner.stores._copies[TASK] is copy
    assert words.get("one") == 3
    epochs = owner_epochs(cluster)
    assert epochs == sorted(epochs)
    assert set(epochs) == {1, 2}, "it is claimed once for each assignment"
    assert owner.state() == restored(cluster) == cluster.expected()


@kinds
def test_nothing_is_processed_until_the_answer(cluster, member, kind):
    owner = member(kind=kind)
    owner.assign()
    owner.poll()
    owner.revoke()
    batch = {each: cluster.input[each] for each in INPUTS}
    assert owner.stores.process(batch, owner.count) == {}
    assert owner.stores.process({}, owner.count) == {}
    assert "before handler" not in owner.steps.names
    assert owner.state() == {"by-word": {}, "by-letter": {}}
    owner.assign()
    assert owner.stores.process({}, owner.count) == {p: len(cluster.input[p]) for p in INPUTS}
    assert owner.state() == restored(cluster) == cluster.expected()


@kinds
def test_a_task_that_moves_away_is_closed_with_the_answer(cluster, member, kind, tmp_path):
    owner, other = member("one", kind=kind), member("two", kind=kind)
    owner.assign()
    owner.finish()
    offsets = owner.stores.task_offsets()
    suspend(owner)
    assert is_open(owner)
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    assert not is_open(owner)
    assert owner.stores.task_offsets() == (offsets if kind is SqliteStore else {})
    other.assign()
    cluster.write("one")
    other.finish()
    assert other.state() == cluster.expected()


@pytest.mark.parametrize("is_revoked_before", [True, False])
@kinds
def test_a_task_that_is_lost_is_closed_without_an_answer(cluster, member, kind, is_revoked_before):
    owner = member(kind=kind)
    owner.assign()
    owner.finish()
    if is_revoked_before:
        suspend(owner)
        owner.stores.on_tasks_lost({}, {})
    else:
        owner.stores.on_tasks_lost({TASK: INPUTS}, {})
    assert owner.stores.process({}, owner.count) == {}
    assert not is_open(owner)
    owner.assign()
    assert owner.stores.restoring_tasks() == {TASK}, "another member may have changed its state"
    owner.finish()
    assert owner.state() == restored(cluster) == cluster.expected()


@kinds
def test_what_another_owner_wrote_meanwhile_is_read_and_nothing_else(cluster, member, kind):
    """An answer that the member never got gave the task away."""
    owner, other = member("one", kind=kind), member("two", kind=kind)
    owner.assign()
    owner.finish()
    suspend(owner)
    other.assign()
    cluster.write("one", "two")
    other.finish()
    assert suspend(owner) == [], "it does not follow"
    owner.assign()
    cluster.write("six")
    owner.finish()
    # Of each of both stores, two keys.
    assert owner.sentences[-1] == "restored tasks: 0_0; 4 changelog records read"
    assert owner.state() == restored(cluster) == cluster.expected()
    # What the other one writes now does not count.
    other.poll()
    other.finish()
    assert restored(cluster) == cluster.expected()


@pytest.mark.parametrize("is_active", [True, False])
def test_a_standby_stops_to_follow_and_reads_on_from_there(cluster, member, is_active):
    owner, standby = member("one"), member("two", kind=DictStore)
    owner.assign()
    owner.finish()
    standby.assign(active=False)
    standby.poll()
    before = standby.state()
    cluster.write("one")
    owner.finish()
    assert suspend(standby, active=False) == []
    assert standby.state() == before
    standby.assign(active=is_active)
    if is_active:
        standby.finish()
        assert standby.sentences[-1] == "restored tasks: 0_0; 2 changelog records read"
    standby.poll()
    assert standby.state() == restored(cluster) == cluster.expected()


def test_an_active_task_that_was_suspended_follows_as_a_standby(cluster, member):
    owner, other = member("one", kind=DictStore), member("two")
    owner.assign()
    owner.finish()
    suspend(owner)
    owner.assign(active=False)
    other.assign()
    cluster.write("one")
    other.finish()
    owner.poll()
    assert owner.state() == cluster.expected()


@kinds
def test_a_close_in_the_middle_keeps_the_files_and_a_restart_reads_nothing(cluster, member, kind):
    owner = member(kind=kind)
    owner.assign()
    owner.finish()
    suspend(owner)
    owner.stores.close()
    assert not is_open(owner)
    again = member(kind=kind)
    again.assign()
    again.finish()
    assert (again.sentences[-1] == NOTHING_READ) is (kind is SqliteStore)
    assert again.state() == restored(cluster) == cluster.expected()


def test_a_takeover_that_a_rebalance_interrupts_writes_nothing_more(cluster, member):
    owner = member(kind=DictStore, restore_s=0.0)
    owner.assign()
    owner.poll()
    assert owner.stores.waiting
    assert suspend(owner) == []
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == cluster.expected()


def test_a_task_that_failed_to_write_is_read_again_after_it_was_suspended(cluster, member):
    owner = member(kind=DictStore)
    owner.assign()
    owner.poll()
    owner.access.broken = ClusterUnavailable("gone")
    batch = {each: cluster.input[each] for each in INPUTS}
    with pytest.raises(ClusterUnavailable):
        owner.stores.process(batch, owner.count)
    assert suspend(owner) == []
    owner.access.broken = None
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == cluster.expected()


def test_a_member_of_the_same_process_waits_for_the_answer_of_the_one_that_has_the_files(
    cluster, member
):
    owner, other = member("shared"), member("shared")
    owner.assign()
    owner.finish()
    suspend(owner)
    other.assign()
    other.poll()
    assert other.stores.waiting == frozenset(INPUTS)
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    other.finish()
    assert other.sentences[-1] == NOTHING_READ
    assert other.state() == cluster.expected()


def restores_of(member):
    """The sentences about restored tasks."""
    return [each for each in member.sentences if each.startswith("restored tasks: ")]


def test_a_restore_is_told_once_however_often_the_task_comes_back(cluster, member):
    first, owner = member("one"), member("two", kind=DictStore)
    first.assign()
    first.finish()
    first.stores.close()
    owner.assign()
    owner.finish()
    assert restores_of(owner) not in ([], [NOTHING_READ])
    before = len(owner_epochs(cluster))
    owner.revoke()
    owner.assign()
    owner.poll()
    suspend(owner)
    owner.assign()
    owner.poll()
    assert len(owner_epochs(cluster)) == before + 2, "it is claimed again each time"
    assert len(restores_of(owner)) == 1
    # As a standby it follows another owner; its next takeover is a restore.
    owner.revoke()
    owner.assign(active=False)
    owner.poll()
    owner.assign()
    owner.poll()
    assert restores_of(owner)[1:] == [NOTHING_READ]


def test_a_task_without_stores_runs_at_once():
    topology = (
        Topology()
        .add_source("read", topics=["orders"])
        .add_processor("pass", parents=["read"])
        .add_source("other", topics=["visits"])
        .add_processor("count", parents=["other"])
        .add_state_store("counts", processors=["count"])
    )
    counts = DictStore("counts", key=TEXT, value=JSON)
    cluster = Cluster()
    cluster.write(*WORDS)
    with TaskStores(
        topology, [counts], application_id="app", access=Access(cluster, Steps())
    ) as stores:
        [task] = {stores._layout.task_of_input("orders", 0)}
        stores.on_tasks_assigned({task: (INPUTS[0],)}, {})
        seen = []

        def handle(record, state):
            seen.append(record.word)
            with pytest.raises(TopologyError, match=r"has no store 'counts'; its stores: none"):
                state[counts]

        batch = {INPUTS[0]: cluster.input[INPUTS[0]][:2]}
        assert stores.process(batch, handle) == {INPUTS[0]: 2}
        assert len(seen) == 2
        assert not cluster.logs


def test_a_task_is_restoring_by_its_offset_until_it_is_restored_and_not_while_it_is_claimed_again(
    cluster, member
):
    owner, next_owner = member("one"), member("two")
    owner.assign()
    assert owner.stores.task_offsets() == {TASK: 0}
    assert owner.stores.restoring_tasks() == {TASK}
    owner.finish()
    assert owner.stores.restoring_tasks() == set()
    for _ in range(2):  # two rebalances within one poll
        owner.revoke()
        owner.assign()
        assert owner.stores.restoring_tasks() == set(), "its state is the latest"
    owner.revoke()
    owner.stores.on_tasks_assigned({}, {})
    next_owner.assign()
    next_owner.finish()
    owner.assign()
    assert owner.stores.restoring_tasks() == {TASK}, "another member has changed its state"
    owner.poll()
    owner.stores.on_tasks_lost({TASK: INPUTS}, {})
    owner.assign()
    assert owner.stores.restoring_tasks() == {TASK}


def test_a_task_without_a_store_here_is_never_restoring(cluster):
    stores = TaskStores(TOPOLOGY, [], application_id="app", access=Access(cluster, Steps()))
    stores.on_tasks_assigned({TASK: INPUTS}, {})
    assert (stores.restoring_tasks(), dict(stores.task_offsets())) == (set(), {})
    stores.close()
