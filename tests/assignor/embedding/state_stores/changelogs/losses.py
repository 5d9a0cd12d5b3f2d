"""Losses of changelogs, and what the members of a task do then."""

from uuid import UUID

import pytest

from assignor.embedding import CopiesKept
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, Log, restored

OLD, NEW = UUID(int=1), UUID(int=2)
FILE = "0_0/by-letter.db"
NOTE = f"{FILE}.kept"


def set_ids(cluster, topic_id, changelogs=CHANGELOGS):
    cluster.topic_ids.update({changelog.topic: topic_id for changelog in changelogs})


def make_anew(cluster, changelogs=CHANGELOGS):
    for changelog in changelogs:
        cluster.logs[changelog] = Log()
    set_ids(cluster, NEW, changelogs)


def cut_off(cluster, changelogs=CHANGELOGS, records=2):
    """As an unclean leader election does."""
    for changelog in changelogs:
        log = cluster.logs[changelog]
        log.end -= records
        log.records = [record for record in log.records if record.offset < log.end]


losses = pytest.mark.parametrize("lose", [make_anew, cut_off])


def poll(made):
    made.poll()
    made.finish()


def is_lost(made, tmp_path):
    """Whether the member ends, and says why."""
    with pytest.raises(CopiesKept) as raised:
        poll(made)
    found = str(raised.value)
    folder = f"{tmp_path}/one"
    assert ".db has all of the task's state, up to offset " in found
    assert f"assignor write-back --state-dir {folder} --bootstrap-server" in found
    assert found.endswith(
        f"; kept: {folder}/{FILE}, {folder}/0_0/by-word.db; "
        f"to begin without them, as after assignor reset, delete {folder}/0_0"
    )
    return found


def lose_and_stop(cluster, owner, tmp_path, lose, changelogs=CHANGELOGS):
    """The owner ends, and keeps what it has."""
    lose(cluster, changelogs)
    owner.revoke()
    owner.assign()
    is_lost(owner, tmp_path)
    owner.stores.close()


def run_other(cluster, member, *words, name="two"):
    """Another member runs the task meanwhile, with what the changelogs have."""
    other = member(name)
    other.assign()
    cluster.write(*words)
    other.finish()
    other.stores.close()


def run_and_compare(cluster, member, name="one"):
    """A member of the directory runs the task: everything is counted once."""
    made = member(name)
    made.assign()
    cluster.write("one", "six")
    made.finish()
    assert made.state() == restored(cluster) == cluster.expected()
    made.stores.close()


def owner_state(cluster, most):
    """The counts of the first words that were written."""
    kept = {p: list(rows) for p, rows in cluster.input.items()}
    for partition, rows in kept.items():
        cluster.input[partition] = [row for row in rows if row.timestamp < most]
    expected = cluster.expected()
    cluster.input.update(kept)
    return expected


def keep_both(member):
    for name in ("one", "two"):
        made = member(name)
        made.assign()
        with pytest.raises(CopiesKept):
            poll(made)
        made.stores.close()
