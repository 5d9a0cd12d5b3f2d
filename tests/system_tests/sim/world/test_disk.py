"""State on disk: its lag, restore and loss."""

from encoding import TaskId
from system_tests.sim.world.disk import Disk, StateRates

TASK = TaskId(0, 1)
RATES = StateRates(history=1000, growth=100, restore=1000, checkpoint_ms=5_000)


def test_a_task_without_state_reads_everything():
    disk = Disk(rates=RATES)
    assert disk.open(TASK, 0) == (1000, 1000)
    assert disk.report(500) == {TASK: 500}


def test_an_open_copy_catches_up_and_then_follows_the_end():
    disk = Disk(rates=RATES)
    disk.open(TASK, 0)
    assert disk.offset_sum(TASK, 10_000) == RATES.end_offset_sum(TASK, 10_000) == 2000
    assert disk.open(TASK, 10_000) == (0, 0)


def test_a_closed_copy_lags_by_what_was_written_meanwhile():
    disk = Disk(rates=RATES)
    disk.open(TASK, 0)
    disk.close(TASK, 10_000)
    assert disk.report(15_000) == {TASK: 2000}
    assert disk.open(TASK, 15_000) == (500, 500)


def test_a_crash_falls_back_to_the_last_checkpoint():
    disk = Disk(rates=RATES)
    disk.open(TASK, 0)
    disk.crash(10_000)
    assert disk.report(10_000) == {TASK: RATES.end_offset_sum(TASK, 5_000)}


def test_a_crash_soon_after_opening_leaves_what_was_there():
    disk = Disk(rates=RATES, at_rest={TASK: 7})
    disk.open(TASK, 9_000)
    disk.crash(10_000)
    assert disk.report(10_000) == {TASK: 7}


def test_a_lost_disk_has_nothing_and_a_copy_goes_its_own_way():
    disk = Disk(rates=RATES)
    disk.open(TASK, 0)
    other = disk.copy()
    disk.lose()
    assert disk.report(1_000) == {}
    assert other.report(1_000) == {TASK: 1000}


def test_a_task_without_changelog_has_nothing_to_restore():
    disk = Disk(rates=StateRates(sizes=(500, 0), growths=(5, 0)))
    assert disk.open(TASK, 1_000_000) == (0, 0)
    assert disk.open(TaskId(0, 0), 10_000)[0] == 550


def test_open_copies_can_be_filled_without_time():
    disk = Disk(rates=RATES)
    disk.open(TASK, 0)
    disk.fill(1_000)
    assert disk.offset_sum(TASK, 1_000) == 1_100
    assert disk.offset_sum(TASK, 2_000) == 1_200
