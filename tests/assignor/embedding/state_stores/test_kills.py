"""A process ends at any step, or is paused there while another one takes its task over.

The oracle counts the input. It is compared with the state of the next member, with what a member
without files restores from the changelogs, and with the outputs, none of which may be lost. No
changelog loses records here: a copy that is kept or rebuilt because it has what its changelog lacks
is wrong, too.
"""

import logging
import shutil
from contextlib import contextmanager, suppress

import pytest

from assignor.embedding import CopiesKept, DictStore, SqliteStore
from assignor.embedding.state_stores import replica, writing
from assignor.embedding.state_stores.records import NOBODY, owner_of
from tests.assignor.embedding.state_stores.logs import (
    WORDS,
    Cluster,
    Killed,
    Member,
    Steps,
    restored,
)

# Where the task goes after the kill: to a process with the files of the killed one, to one without,
# to one that keeps state in memory; and from there back to the files of the killed one.
DISKS = {
    "same disk": SqliteStore,
    "other disk": SqliteStore,
    "memory": DictStore,
    "back again": SqliteStore,
}


class Setup:
    """A cluster, and members with directories."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        self.cluster = Cluster()
        self.cluster.write(*WORDS, *WORDS[:2])

    def member(self, name, *, kind=SqliteStore, steps=None):
        state_dir = self.folder / name
        state_dir.mkdir(parents=True, exist_ok=True)
        member = Member(self.cluster, kind=kind, state_dir=state_dir, steps=steps)
        member.assign()
        return member

    def wrong(self, member):
        expected = self.cluster.expected()
        sent = {key.decode(): n for (_, key, _, _), n in self.cluster.outputs.items()}
        found = {
            "state": member.state() == expected,
            "changelog": restored(self.cluster) == expected,
            "outputs": all(sent.get(word, 0) >= n for word, n in expected["by-word"].items()),
        }
        return [name for name, holds in found.items() if not holds]


@contextmanager
def noted_losses():
    """Yield what members say of changelogs that have lost records."""
    lost, logger = [], logging.getLogger("assignor.embedding")
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lost.append(record.getMessage())
    logger.addHandler(handler)
    try:
        yield lost
    except CopiesKept as error:
        lost.append(str(error))
    finally:
        logger.removeHandler(handler)


def finish_in_rebalances(member):
    """Process all input, with two rebalances that take longer than a poll."""
    for _ in range(2):
        member.poll()
        member.revoke()
        member.stores.process({}, member.count)
        member.assign()
    member.finish()


def steps_of(folder, finish=Member.finish):
    """Names of all steps of a member that is not disturbed."""
    setup = Setup(folder)
    steps = Steps()
    member = setup.member("one", steps=steps)
    finish(member)
    assert setup.wrong(member) == []
    member.stores.close()
    return steps.names


def wrong_after_kills(folder, kind, *, disk, compact=False, finish=Member.finish):
    """Yield steps at which a kill leads to a wrong result, with what is wrong."""
    for at, name in enumerate(steps_of(folder, finish), start=1):
        setup = Setup(folder)
        killed = setup.member("one", kind=kind, steps=Steps(at))
        with suppress(Killed):
            finish(killed)
        killed.stores._local.close()  # the system releases the locks of a process that ends
        if compact:
            for log in setup.cluster.logs.values():
                log.compact()
        following = setup.member("one" if disk == "same disk" else "two", kind=kind)
        wrong = []
        with noted_losses() as lost:
            # Other batches than before: a copy that is ahead of its changelog is not right by
            # chance.
            setup.cluster.write(*WORDS)
            following.finish(records=9)
            if disk == "back again":
                following.stores.close()
                following = setup.member("one", kind=kind)
            setup.cluster.write(*WORDS)
            following.finish()
            wrong = setup.wrong(following)
        following.stores.close()
        if wrong or lost:
            yield at, name, wrong + lost


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(
    "disk",
    [
        disk if kind is DictStore else pytest.param(disk, marks=pytest.mark.slow)
        for disk, kind in DISKS.items()
    ],
)
def test_a_kill_at_any_step_changes_no_count(tmp_path, disk, compact):
    kills = wrong_after_kills(tmp_path / "folder", DISKS[disk], disk=disk, compact=compact)
    assert not list(kills)


@pytest.mark.parametrize("disk", [pytest.param("same disk", marks=pytest.mark.slow), "memory"])
def test_a_kill_while_tasks_are_suspended_and_resumed_changes_no_count(tmp_path, disk):
    folder, kind = tmp_path / "folder", DISKS[disk]
    assert not list(wrong_after_kills(folder, kind, disk=disk, finish=finish_in_rebalances))


def test_the_steps_are_those_that_matter(tmp_path):
    assert set(steps_of(tmp_path / "folder")) >= {
        "end offsets",
        "before handler",
        "after handler",
        "flush",
        "append",
        "appended",
        "before local write",
        "after local write",
        "before commit",
    }


def wrong_after_pauses(folder, kind):
    """Yield steps at which a pause with a takeover by another member leads to a wrong result."""
    for at, name in enumerate(steps_of(folder), start=1):
        setup = Setup(folder)
        members = []

        def take_over(setup=setup, members=members):
            members.append(setup.member("two", kind=kind))
            members[0].poll()
            setup.cluster.write(*WORDS[:3])
            members[0].poll()

        paused = setup.member("one", kind=kind, steps=Steps(at, then=take_over))
        while not members:
            paused.poll()
        # Neither knows that the other one has the task.
        paused.poll()
        members[0].poll()
        paused.revoke()
        members[0].finish()
        wrong = setup.wrong(members[0])
        for log in setup.cluster.logs.values():
            log.compact()
        wrong += [f"{what}, compacted" for what in setup.wrong(members[0])]
        for member in (paused, *members):
            member.stores.close()
        if wrong:
            yield at, name, wrong


@pytest.mark.parametrize("kind", [pytest.param(SqliteStore, marks=pytest.mark.slow), DictStore])
def test_a_member_that_was_paused_at_any_step_changes_no_count(tmp_path, kind):
    assert not list(wrong_after_pauses(tmp_path / "folder", kind))


# What each step of the protocol is for: without it, some kill or pause leads to a wrong result.


def checkpoint_before_produce(monkeypatch):
    """The local copies get writes and positions before the changelogs do."""

    def write(access, transactions):
        for each in transactions:
            copy = each.opened.copy
            for name, writes in each.commit.writes.items():
                store = copy.replicas[name]
                store.written(
                    writes,
                    position=store.position + len(writes) + 1,
                    owner=copy.owner,
                    begun=each.begun,
                    commit=each.value,
                )
            copy.commit = each.commit
        writing.appended(access, [each.commit_records() for each in transactions])
        for each in transactions:
            for records in each.records():
                access.append(records)

    monkeypatch.setattr(writing, "_write", write)


def writes_before_the_commit_record(monkeypatch):
    """Writes become records before the commit record that has all of them."""
    kept = writing._Transaction

    class Later(kept):
        def is_committed(self, offsets):
            del offsets
            return True

        def finish(self, offsets):
            copy = self.opened.copy
            for name, found in zip(self.commit.writes, offsets, strict=True):
                store = copy.replicas[name]
                store.written(
                    self.commit.writes[name],
                    position=max(found) + 2,
                    owner=copy.owner,
                    begun=self.begun,
                    commit=self.value,
                )
            copy.commit = self.commit

    def write(access, transactions):
        made = [Later(each.opened) for each in transactions]
        for each in made:
            written = [access.append(records) for records in each.records()]
            access.append(each.commit_records())
            each.finish(written)

    monkeypatch.setattr(writing, "_write", write)


def commits_are_not_completed(monkeypatch):
    monkeypatch.setattr(replica.Replica, "missing", lambda *_: {})


def input_offsets_are_not_kept(monkeypatch):
    monkeypatch.setattr(writing.OpenBatch, "next_input", lambda *_: 0)


def outputs_after_the_commit_record(monkeypatch):
    kept = writing._write

    def write_batches(access, opened):
        changed = [writing._Transaction(each) for each in opened if each.batch.writes]
        kept(access, changed)
        for each in changed:
            each.opened.batch.begin()
        access.flush()

    monkeypatch.setattr("assignor.embedding.state_stores.writing.write_batches", write_batches)


def records_of_earlier_owners_count(monkeypatch):
    latest = [NOBODY]

    def latest_owner(headers):
        latest[0] = max(latest[0], owner_of(headers))
        return latest[0]

    monkeypatch.setattr("assignor.embedding.state_stores.records.owner_of", latest_owner)


def records_of_others_are_not_noticed(monkeypatch):
    monkeypatch.setattr(replica.Replica, "is_next", lambda *_, **__: True)


def hidden_values_are_not_repaired(monkeypatch):
    monkeypatch.setattr(replica.Replica, "repairs", lambda *_, **__: {})


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        checkpoint_before_produce,
        writes_before_the_commit_record,
        commits_are_not_completed,
        input_offsets_are_not_kept,
        outputs_after_the_commit_record,
    ],
)
def test_a_wrong_order_is_found_by_kills(tmp_path, monkeypatch, fault):
    fault(monkeypatch)
    found = (
        wrong
        for disk in reversed(DISKS)
        for wrong in wrong_after_kills(tmp_path / "folder", DISKS[disk], disk=disk)
    )
    assert next(found, None) is not None


@pytest.mark.parametrize(
    "fault",
    [
        records_of_earlier_owners_count,
        records_of_others_are_not_noticed,
        hidden_values_are_not_repaired,
    ],
)
def test_a_member_that_was_paused_is_found_by_pauses(tmp_path, monkeypatch, fault):
    fault(monkeypatch)
    assert next(wrong_after_pauses(tmp_path / "folder", DictStore), None) is not None
