"""Commit records that a former owner, which was paused, writes behind those of the present one.

They do not count, and hide the last one that does: compaction removes that.
"""

import pytest

from assignor.embedding import ClusterUnavailable, DictStore, MemberStopped
from assignor.embedding.state_stores.records import COMMIT_KEY
from tests.assignor.embedding.state_stores.logs import CHANGELOGS


def records(cluster, key=COMMIT_KEY):
    return [r.offset for r in cluster.logs[CHANGELOGS[0]].records if r.key == key]


@pytest.fixture
def hidden(cluster, owner, member):
    """The present owner; the former one has written a commit record behind the owner's last."""
    cluster.write("odd")
    present = member("two", kind=DictStore)
    present.assign()
    present.finish()
    end = cluster.logs[CHANGELOGS[0]].end
    owner.poll()
    assert records(cluster)[-1] == end
    return present


def compact(cluster):
    for changelog in CHANGELOGS:
        cluster.logs[changelog].compact()


def after(member, name="three"):
    made = member(name, kind=DictStore)
    made.assign()
    return made


def look(member, times=1):
    """Poll; each time a look at idle changelogs is due."""
    for _ in range(times):
        member.stores._takeovers._next_look_s = 0.0
        member.poll()


def lines(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "assignor.embedding.input_rules"]


def test_an_idle_owner_writes_its_commit_record_again(cluster, hidden, member, caplog):
    caplog.set_level("INFO")
    end = cluster.logs[CHANGELOGS[0]].end
    look(hidden, 2)
    assert records(cluster)[-1] > end
    assert "task 0_0 is claimed again: others have written" in caplog.text
    compact(cluster)
    cluster.committed.clear()
    last = after(member)
    last.finish()
    assert last.state() == cluster.expected() == hidden.state()


def test_an_owner_that_writes_or_is_alone_does_not_claim_again(cluster, owner, caplog):
    caplog.set_level("INFO")
    asked = owner.steps.names.count("end offsets")
    for word in ("one", "two", "three"):
        cluster.write(word)
        look(owner)
    assert owner.steps.names.count("end offsets") == asked
    look(owner, 4)
    assert owner.steps.names.count("end offsets") == asked + 3
    assert "claimed again" not in caplog.text


def test_brokers_that_do_not_answer_are_asked_later(hidden, caplog):
    caplog.set_level("INFO")
    answer = hidden.access.end_offsets

    def refuse(_):
        raise ClusterUnavailable("gone")

    hidden.access.end_offsets = refuse
    look(hidden, 2)
    assert "looked at later: gone" in caplog.text
    assert "claimed again" not in caplog.text
    hidden.access.end_offsets = answer
    look(hidden)
    assert "claimed again" in caplog.text


@pytest.mark.parametrize("starts", [1, 2])
def test_without_any_offset_the_member_ends_and_counts_nothing_twice(
    cluster, hidden, member, starts
):
    compact(cluster)
    at = dict(cluster.committed)
    cluster.committed.clear()
    for number in range(starts):
        last = after(member, f"start {number}")
        with pytest.raises(MemberStopped) as raised:
            last.finish()
        assert "orders [0]: it is not known up to where the state has its input: " in str(
            raised.value
        )
        assert "(it says offset 7)" in str(raised.value)
        last.stores.close()
    # What the message says to do.
    cluster.committed.update(at)
    last = after(member)
    last.finish()
    assert last.state() == cluster.expected()


def test_where_the_group_has_an_offset_it_is_a_warning(cluster, hidden, member, caplog):
    compact(cluster)
    last = after(member)
    last.finish()
    assert last.state() == cluster.expected()
    first, second = lines(caplog)
    assert first.startswith("orders [0]: it is not known up to where the state has its input: ")
    assert "; reading begins at the committed offset, 7 of " in first
    assert second.startswith("visits [0]: it is not known")
    # And the next commit says it again.
    cluster.write("six")
    last.finish()
    cluster.committed.clear()
    following = after(member, "four")
    following.finish()
    assert following.state() == cluster.expected()
    assert len(lines(caplog)) == 2


def test_a_first_batch_that_does_not_count_leaves_no_doubt(cluster, member, caplog):
    """No commit was made before, and no entries: there is nothing that could count twice."""
    former = member("one")
    former.assign()
    former.stores.process({}, former.count)
    present = member("two", kind=DictStore)
    present.assign()
    present.stores.process({}, present.count)
    former.poll()
    assert records(cluster)
    last = after(member)
    last.finish()
    assert (last.state(), lines(caplog)) == (cluster.expected(), [])
