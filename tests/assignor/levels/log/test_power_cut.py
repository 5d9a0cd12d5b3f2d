"""Power cuts of the feature log: at every byte of every write, and writers that are killed."""

import os
import random
import signal

import pytest

from assignor.levels.log.directory import FeatureLog, LogFormat, format_log, opened_log
from assignor.levels.log.records import Note
from assignor.stores.disk import FolderDisk
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA, TASK_PLACEMENT, LevelRange
from tests.assignor.stores.crashing_disk import MemoryDisk, apply, power_cuts

FORMAT = LogFormat(log_id="a1", levels={PERSISTENT_METADATA: 1}, at_ms=5)
NOTE = Note(at_ms=1_700_000_000_000, who="ada", why="try it")
RANGES = {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)}


def history(disk):
    """Run commands of operators and members; yield the acknowledged state after each."""
    format_log(disk, FORMAT)
    log = FeatureLog(disk)
    yield log.state
    for levels in (
        {ASSIGNMENT_PROTOCOL: 11},
        {PERSISTENT_METADATA: 2, ASSIGNMENT_PROTOCOL: 101},
        {"m1": RANGES},
        {"m2": RANGES},
        {TASK_PLACEMENT: 2},
        {"m1": None},
        {PERSISTENT_METADATA: 1},
        {TASK_PLACEMENT: 0, ASSIGNMENT_PROTOCOL: 11},
    ):
        name, value = next(iter(levels.items()))
        if name.startswith("m"):
            log.register(name, value)
        else:
            log.change(levels, NOTE)
        yield log.state


def cuts_of_history():
    """(files, acknowledged state, state in flight) for every power cut in the history."""
    disk = MemoryDisk()
    files, acknowledged, done = {}, None, 0
    for state in history(disk):
        for step in disk.steps[done:]:
            for cut in power_cuts(files, step):
                yield cut, acknowledged, state
            files = apply(files, step)
            yield dict(files), acknowledged, state
        done = len(disk.steps)
        acknowledged = state
        yield dict(files), acknowledged, state


def test_nothing_acknowledged_is_lost_by_a_power_cut_at_any_byte(capsys):
    cases = 0
    for files, acknowledged, in_flight in cuts_of_history():
        cases += 1
        disk = MemoryDisk(files)
        if acknowledged is None and "format.bin" not in files:
            continue
        found = FeatureLog(disk).state
        assert found in (acknowledged, in_flight), (sorted(files), found)
    with capsys.disabled():
        print(f"\nfeature log: {cases} power cuts, 0 losses")  # noqa: T201 the figure is what is asked for
    assert cases > 3_000


def test_after_any_power_cut_the_log_goes_on():
    kept = random.Random(7).sample(list(cuts_of_history()), 400)  # noqa: S311 the same each time
    for files, _, _ in kept:
        if "format.bin" not in files:
            continue
        disk = MemoryDisk(files)
        log = FeatureLog(disk)
        epoch = log.state.levels.epoch
        log.change({TASK_PLACEMENT: 1}, NOTE)
        assert FeatureLog(MemoryDisk(dict(disk.files))).state == log.state
        assert log.state.levels.epoch == epoch + 1
        assert not any(name.endswith(".partial") for name in disk.files)


@pytest.mark.slow
def test_a_power_cut_while_a_log_is_put_in_order_loses_nothing_either():
    cases = 0
    for files, acknowledged, in_flight in cuts_of_history():
        if acknowledged is None:
            continue
        disk = MemoryDisk(dict(files))
        FeatureLog(disk)
        for number, step in enumerate(disk.steps):
            before = dict(files)
            for earlier in disk.steps[:number]:
                before = apply(before, earlier)
            for cut in list(power_cuts(before, step))[:: 1 + len(step[2]) // 4]:
                cases += 1
                assert FeatureLog(MemoryDisk(cut)).state in (acknowledged, in_flight)
    assert cases > 1_000


def test_files_that_come_back_after_they_were_removed_change_nothing():
    disk = MemoryDisk()
    *_, last = history(disk)
    risen = dict(disk.files)
    for kind, name, data in disk.steps:
        if kind != "remove" and name not in risen:
            before = b"" if kind == "replace" else risen.get(name, b"")
            risen[name] = before + data
    assert len(risen) > len(disk.files)
    assert FeatureLog(MemoryDisk(risen)).state == last


def write_until_killed(folder, reports):
    """Change levels again and again; report each epoch once it is acknowledged."""
    with opened_log(folder) as log:
        print("ready", log.state.levels.epoch, file=reports, flush=True)
        while True:
            epoch = log.state.levels.epoch + 1
            log.register(f"m{epoch % 5}", {TASK_PLACEMENT: LevelRange(min=1, max=1 + epoch % 9)})
            levels = {TASK_PLACEMENT: 1 + epoch % 2, PERSISTENT_METADATA: 1 + epoch // 2 % 2}
            log.change(levels, Note())
            print("done", epoch, file=reports, flush=True)


def killed_writer(folder, lines):
    """Kill a process that writes the log after so many reports; return the words of all reports."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receive)
            write_until_killed(folder, os.fdopen(send, "w", encoding="utf-8"))
        finally:
            os._exit(1)
    os.close(send)
    with os.fdopen(receive, encoding="utf-8") as reports:
        heard = [reports.readline().split() for _ in range(lines)]
        os.kill(child, signal.SIGKILL)
        heard += [line.split() for line in reports if line.endswith("\n")]
    os.waitpid(child, 0)
    return heard


@pytest.mark.usefixtures("clock")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path, capsys):
    rng = random.Random(11)  # noqa: S311 the same each time
    format_log(FolderDisk(tmp_path), FORMAT)
    acknowledged, kills, changes = 0, 12, 0
    for _ in range(kills):
        heard = killed_writer(tmp_path, rng.randint(1, 20))
        assert int(heard[0][1]) in (acknowledged, acknowledged + 1)
        acknowledged = int(heard[-1][1])
        changes += len(heard) - 1
        levels = FeatureLog(FolderDisk(tmp_path), is_reader=True).state.levels
        assert levels.epoch in (acknowledged, acknowledged + 1)
        assert levels.level_of(TASK_PLACEMENT) in (0, 1 + levels.epoch % 2)
    with capsys.disabled():
        print(f"\nfeature log: {kills} kills, {changes} changes acknowledged, 0 losses")  # noqa: T201 the figure is what is asked for
