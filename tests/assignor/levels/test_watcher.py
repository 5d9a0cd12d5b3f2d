"""The thread that polls levels, and the reaction of a member."""

import threading
from dataclasses import replace

import pytest

from assignor import MemberRefused
from assignor.levels import watcher as levels
from assignor.levels.log import LogFormat, Note, format_log, opened_log
from assignor.levels.watcher import FolderLevels, LevelWatch
from assignor.stores import FolderDisk, StoreError
from encoding import decode_subscription
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels
from tests.assignor.adapters.members import cluster, followups, joined, made, on_the_wire
from tests.assignor.embedding.clusters import until
from tests.assignor.levels.sources import Source, Timer, at, look, settled


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch):
    """Poll once where a member starts its thread; later polls are those of the test."""
    monkeypatch.setattr(LevelWatch, "start", LevelWatch._look)


@pytest.mark.usefixtures("clock")
def test_the_thread_looks_at_once_and_then_again_until_it_is_closed(monkeypatch):
    monkeypatch.setattr(levels, "_LEAST_BETWEEN_S", 0.001)
    source, found, errors = Source(at(11, 1)), [], []
    level_watch = LevelWatch(source, on_levels=found.append, on_error=errors.append, every_s=0.01)
    level_watch._thread.start()
    until(lambda: source.polls > 2)
    level_watch.close()
    assert not level_watch._thread.is_alive()
    assert (found, errors) == ([at(11, 1)], [])


def test_stale_levels_are_ignored_and_a_failure_is_reported_once_and_keeps_levels():
    down = OSError("no broker")
    source, found, errors = Source(at(101, 4), down, down, at(11, 2), at(11, 5)), [], []
    level_watch = LevelWatch(source, on_levels=found.append, on_error=errors.append)
    for _ in range(6):
        level_watch._look()
    assert found == [at(101, 4), at(11, 5)]
    assert errors == ["levels cannot be read: OSError: no broker"]
    assert level_watch.found == at(11, 5)


def test_new_levels_make_the_leader_rejoin_and_nobody_else():
    sources = [Source(at(11, 1)), Source(at(11, 1))]
    pair = [made(number=n + 1, level_source=s)[0] for n, s in enumerate(sources)]
    for assignor in pair:
        assignor._driver.timer = Timer()
    settled(*pair)
    for assignor in pair:
        assignor._driver.levels_found(at(101, 2))
    assert [assignor._driver.timer.delays for assignor in pair] == [[0], []]
    pair[0]._driver.levels_found(at(101, 0))  # a stale broker
    assert pair[0]._driver.timer.delays == [0]
    for assignor in pair:
        assignor.close()


def test_levels_found_behind_the_leaders_answer_are_asked_for_once_it_has_arrived():
    leader, coordinator, _ = made()
    settled(leader)
    leader._driver.timer, timers = followups(coordinator)
    group = [joined(leader, "m0")]
    coordinator.busy = True
    answers = leader.assign(cluster(lines=4), group)
    leader._driver.levels_found(at(101, 2))
    timers.fire()
    leader.on_assignment(on_the_wire(answers["m0"]), 2)  # it says that no follow-up is wanted
    coordinator.busy = False
    timers.fire()
    assert coordinator.requests == 1
    settled(leader)
    timers.fire()
    assert coordinator.requests == 1
    leader.close()


def test_levels_that_the_leaders_answer_carries_are_not_asked_for_again():
    source = Source(at(11, 1))
    leader, _, _ = made(level_source=source)
    settled(leader)
    leader._driver.timer = Timer()
    group = [joined(leader, "m0")]
    source.answers = [at(101, 2)]
    look(leader)
    assert leader._driver.levels.found == at(101, 2)
    leader.assign(cluster(lines=4), group)
    leader._driver.levels_found(at(101, 2))
    leader.close()
    assert leader._driver.timer.delays == []


def test_under_a_jvm_leader_a_member_comes_down_by_itself_and_never_goes_up():
    source = Source(at(11, 1))
    (native, _, _), (jvm, _, _) = made(level_source=source), made(number=2, release="3.9.1")
    native._driver.timer = Timer()
    settled(native, jvm, leader=1)
    native._driver.levels_found(at(101, 2))
    assert 0 not in native._driver.timer.delays
    native._driver.levels_found(at(9, 3))
    assert 0 in native._driver.timer.delays
    native.close()


def test_polled_levels_are_written_with_the_next_subscription_under_any_leader():
    source = Source(at(9, 3))
    (assignor, _, _), (leader, _, _) = made(level_source=source), made(number=2)
    assert decode_subscription(joined(assignor, "x").metadata.user_data).version == 9
    settled(assignor, leader, leader=1)
    assert leader.levels == at(9, 3)
    assignor.close()


def test_a_group_that_holds_back_stays_at_11_until_a_level_is_finalized():
    (held, _, _), (other, _, _) = made(number=1, hold_back=True), made(number=2)
    assert other.levels == UNKNOWN_LEVELS
    for _ in range(2):
        settled(held, other, leader=1)
    for assignor in (held, other):
        assert decode_subscription(joined(assignor, "x").metadata.user_data).version == 11
    assert other.levels.level_of(ASSIGNMENT_PROTOCOL) == 11


def test_a_member_below_the_level_does_not_join_and_reports_what_to_do():
    source = Source(at(102, 1))
    assignor, _, _ = made(level_source=source)
    with pytest.raises(MemberRefused, match=r"start it with a release that does"):
        assignor.metadata({"lines"})
    assert "assignment.protocol=102" in assignor.failed
    assignor.close()


def test_an_answer_with_a_level_that_cannot_be_met_ends_the_member_without_asking_again():
    (old, coordinator, _), (leader, _, _) = made(number=1), made(number=2, release="next")
    leader._driver.member.state = replace(leader._driver.member.state, levels=at(102, 1))
    settled(old, leader, leader=1)
    assert "assignment.protocol=102" in old.failed
    assert coordinator.requests == 0
    assert old.tasks.active == {}


def test_emulated_releases_know_nothing_of_levels():
    assignor, _, _ = made(release="3.9.1", level_source=Source(at(9, 1)))
    assert assignor._driver.levels is None
    assert decode_subscription(joined(assignor, "x").metadata.user_data).version == 11
    assert assignor.levels == UNKNOWN_LEVELS


def test_members_that_share_a_disk_look_into_a_folder(tmp_path):
    look = FolderLevels(tmp_path)
    with pytest.raises(StoreError, match="assignor storage format"):
        look()
    format_log(FolderDisk(tmp_path), LogFormat(log_id="a", levels={}, at_ms=1))
    assert look() == FinalizedLevels()
    with opened_log(tmp_path) as log:
        log.change({"assignment.protocol": 11}, Note())
        assert look() == FinalizedLevels(levels={"assignment.protocol": 11}, epoch=1)


@pytest.mark.kip("778-15", "core")
def test_levels_without_an_epoch_change_nothing_that_a_member_writes():
    source = Source(at(9, -1))
    assignor, _, _ = made(level_source=source)
    assert decode_subscription(joined(assignor, "x").metadata.user_data).version == 11
    assert (assignor.levels, assignor._driver.levels.found) == (
        UNKNOWN_LEVELS,
        UNKNOWN_LEVELS,
    )
    assignor.close()


class MinimumsSource(Source):
    """A source that stores minimums; records what a leader raises."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.raised = []

    def raise_minimums(self, members):
        self.raised.append(
            {str(member.node_id): str(member.ranges[ASSIGNMENT_PROTOCOL]) for member in members}
        )


@pytest.mark.kip("584-7", "core")
def test_the_leader_has_minimums_raised_once_no_member_supports_the_old_levels():
    """Two members of which one no longer reads what is older than 11, then both."""
    source = MinimumsSource(at(101, 1))
    (leader, _, _), (other, _, _) = made(number=1, level_source=source), made(number=2)
    for assignor, is_enough in ((leader, False), (other, True)):
        assignor._driver.member.state = replace(assignor._driver.member.state, known_versions=(11,))
        settled(leader, other)
        look(leader)
        assert bool(source.raised) == is_enough
    assert source.raised[0] == {"m0": "11..101", "m1": "11..101"}
    joined(leader, "m0")  # a generation begins; its members are not known yet
    raises = len(source.raised)
    look(leader)
    assert len(source.raised) == raises
    leader.close()


def test_levels_reach_members_even_if_the_leader_may_not_raise_minimums():
    class ReadOnly(MinimumsSource):
        def raise_minimums(self, members):
            super().raise_minimums(members)
            raise PermissionError("read only")

    source = ReadOnly(at(101, 1))
    leader, _, _ = made(number=1, level_source=source)
    leader._driver.member.state = replace(leader._driver.member.state, known_versions=(11,))
    settled(leader)
    look(leader)
    assert source.raised
    assert leader.levels.epoch == 1
    leader.close()


@pytest.mark.kip("584-16", "core")
@pytest.mark.parametrize(("settings", "every_s"), [({}, 60), ({"level_poll_s": 5}, 5)])
def test_a_member_looks_once_a_minute_by_default_give_or_take_a_fifth(settings, every_s):
    waits = []

    class Wake(threading.Event):
        def wait(self, timeout):
            waits.append(timeout)
            if len(waits) == 9:
                watch._closed.set()

    source = Source(at(11, 1))
    assignor, _, _ = made(level_source=source, **settings)
    watch = assignor._driver.levels
    watch._wake, source.polls = Wake(), 0
    watch._run()
    assert all(0.8 * every_s <= wait <= 1.2 * every_s for wait in waits)
    assert len(set(waits)) > 1
    assert source.polls == 9
