"""The memory of reached topology versions beside the levels: who keeps it, who is told."""

import pytest

from assignor.levels import LevelWatch
from assignor.topology import content_fingerprint
from probing.topologies import HIGHEST_EPOCH, Reached, newest_memory
from tests.assignor.adapters.members import Listener, made
from tests.assignor.levels.sources import Source, Timer, at, look, settled
from tests.assignor.rebalance.groups import TOPOLOGY


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch):
    """Poll once where a member starts its thread; later polls are those of the test."""
    monkeypatch.setattr(LevelWatch, "start", LevelWatch._look)


class ReachedSource(Source):
    """A source that keeps reached versions of the topology."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.memory = {}

    def reached(self):
        return dict(self.memory)

    def remember_reached(self, memory):
        self.memory = newest_memory(self.memory, memory)


def test_the_leader_keeps_what_the_group_has_reached_at_once_and_no_other_member_does():
    form = content_fingerprint(TOPOLOGY.subtopologies("app")[0])
    sources = [ReachedSource(at(11, 1)) for _ in range(2)]
    pair = [made(number=n + 1, level_source=source)[0] for n, source in enumerate(sources)]
    for assignor in pair:
        assignor._driver.member.topology.learn({form: Reached(3, 1)})
    settled(*pair)
    watches = [assignor._driver.levels for assignor in pair]
    assert [watch._wake.is_set() for watch in watches] == [True, False], "no minute is waited for"
    for assignor in pair:
        look(assignor)
    assert [source.memory for source in sources] == [{form: Reached(3, 1)}, {}]
    for assignor in pair:
        assignor.close()


def test_a_lowered_memory_makes_the_leader_tell_the_group_once():
    form = content_fingerprint(TOPOLOGY.subtopologies("app")[0])
    source = ReachedSource(at(11, 1))
    (leader, _, _), (other, _, _) = made(level_source=source), made(number=2)
    for assignor in (leader, other):
        assignor._driver.member.topology.learn({form: Reached(3, 2)})
    settled(leader, other)
    look(leader)
    for assignor in (leader, other):
        assignor._driver.timer = Timer()
    source.memory = {form: Reached(4, 1)}
    look(leader)
    assert leader._driver.timer.delays == [0]
    settled(leader, other)
    assert other._driver.member.topology.reached == {form: Reached(4, 1)}
    look(leader)
    assert leader._driver.timer.delays == [0]
    source.memory = {b"unknown!": Reached(9, 9)}
    look(leader)
    assert leader._driver.timer.delays == [0], "no member can run it"
    leader.close()


def test_a_memory_that_cannot_be_kept_is_reported_once_and_levels_go_on():
    class ReadOnly(ReachedSource):
        def remember_reached(self, memory):
            raise PermissionError("read only")

    source = ReadOnly(at(101, 1))
    listener = Listener()
    leader, _, _ = made(level_source=source, listener=listener)
    form = content_fingerprint(TOPOLOGY.subtopologies("app")[0])
    leader._driver.member.topology.learn({form: Reached(3, 1)})
    settled(leader)
    look(leader)
    look(leader)
    sentence = "reached versions of the topology cannot be kept: PermissionError: read only"
    assert [call for call in listener.calls if call[0] == "error"] == [("error", sentence)]
    assert leader.levels.epoch == 1
    leader.close()


def test_junk_at_the_source_is_reported_once_and_causes_no_rebalance():
    form = content_fingerprint(TOPOLOGY.subtopologies("app")[0])
    source, listener = ReachedSource(at(11, 1)), Listener()
    leader, _, _ = made(level_source=source, listener=listener)
    leader._driver.member.topology.learn({form: Reached(3, 1)})
    settled(leader)
    look(leader)
    assert source.memory == {form: Reached(3, 1)}
    leader._driver.timer = Timer()
    junk = {number.to_bytes(8, "big"): Reached(9, 9) for number in range(10_000)}
    source.memory = {**junk, form: Reached(HIGHEST_EPOCH - 1, 9)}
    look(leader)
    settled(leader)
    look(leader)
    assert leader._driver.member.topology.reached == {form: Reached(3, 1)}
    assert leader._driver.timer.delays == []
    [(_, why)] = [call for call in listener.calls if call[0] == "error"]
    assert why.startswith("1 reached versions of the topology beside the levels are ignored")
    leader.close()
