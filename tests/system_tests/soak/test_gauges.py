"""Memory and descriptors of a soak: a planted leak is found, a warm-up is accepted."""

import os
import threading

import psutil
import pytest

from system_tests.soak.gauges import Gauges, Growth, Series


def series(values, gauge="memory"):
    found = Series(process="member a", gauge=gauge)
    for at, value in enumerate(values):
        found.add(5.0 * at, float(value))
    return found.growth()


def test_a_planted_leak_of_memory_is_found_with_its_slope():
    growth = series(50 + number * 0.1 for number in range(400))
    assert not growth.ok
    assert growth.per_hour == pytest.approx(72.0)
    assert growth.last - growth.first == pytest.approx(30.0, abs=0.2)
    assert growth.most == pytest.approx(89.9)


def test_a_process_that_warms_up_and_stays_is_no_leak():
    assert series([30, 45, 60, 70, *[80] * 400]).ok
    assert series([200 + 8 * (number % 5) for number in range(400)]).ok


def test_a_planted_leak_of_descriptors_is_found():
    assert not series((40 + number * 0.25 for number in range(200)), "descriptors").ok
    assert series((40 + number % 20 for number in range(200)), "descriptors").ok


def test_too_few_samples_have_no_result():
    assert series([1, 100]) is None


def test_samples_of_days_are_thinned_with_the_same_result():
    found = Series(process="member a", gauge="memory")
    for at in range(50_000):
        found.add(float(at), 50 + at * 0.01)
    growth = found.growth()
    assert len(found.points) < 2048
    assert growth.samples == 50_000
    assert growth.per_hour == pytest.approx(36.0)


def test_a_big_process_may_grow_by_a_share_of_itself():
    def growth(first):
        return series([first] * 100 + [first + 20] * 100)

    assert isinstance(growth(400), Growth)
    assert growth(400).ok
    assert not growth(50).ok


def test_gauges_sample_processes_that_run_and_leave_out_the_others():
    seen = []
    gone = 2**22 + 1
    gauges = Gauges(
        lambda: (("soak", os.getpid()), ("member a", gone)), every_s=60.0, on_sample=seen.append
    )
    gauges.sample()
    assert list(seen[0]) == ["soak"]
    assert seen[0]["soak"]["memory"] > 1
    assert seen[0]["soak"]["descriptors"] >= 3
    assert seen[0]["soak"]["threads"] >= 1


def test_a_process_that_was_replaced_begins_a_new_series():
    pids = [os.getpid()]
    gauges = Gauges(lambda: (("broker", pids[0]),), every_s=60.0, on_sample=lambda _: None)
    for _ in range(8):
        gauges.sample()
    assert {growth.samples for growth in gauges.growths()} == {8}
    pids[0] = os.getppid()
    gauges.sample()
    assert gauges.growths() == ()


def test_what_is_seen_while_processes_warm_up_is_shown_and_not_compared():
    seen = []
    processes = (("soak", os.getpid()),)
    gauges = Gauges(lambda: processes, every_s=60.0, on_sample=seen.append, warm_up_s=3600.0)
    for _ in range(9):
        gauges.sample()
    assert len(seen) == 9
    assert gauges.growths() == ()


def test_a_series_with_too_few_samples_is_named():
    gauges = Gauges(lambda: (("soak", os.getpid()),), every_s=60.0, on_sample=lambda _: None)
    assert gauges.undecided() == {}
    for _ in range(3):
        gauges.sample()
    assert gauges.growths() == ()
    assert gauges.undecided()["memory"] == ("soak: 3 samples of memory, 8 are needed",)
    assert sorted(gauges.undecided()) == ["descriptors", "memory", "threads"]
    for _ in range(5):
        gauges.sample()
    assert gauges.undecided() == {}


def test_a_process_that_was_only_seen_while_it_warmed_up_is_named():
    gauges = Gauges(
        lambda: (("soak", os.getpid()),), every_s=60.0, on_sample=lambda _: None, warm_up_s=3600.0
    )
    gauges.sample()
    assert gauges.undecided()["threads"] == ("soak: 0 samples of threads, 8 are needed",)


def test_a_process_that_cannot_be_measured_is_a_failure_and_the_others_are_measured(monkeypatch):
    seen = []
    real = psutil.Process.num_threads

    def refuses(process):
        if process.pid == os.getppid():
            raise psutil.AccessDenied(process.pid)
        return real(process)

    monkeypatch.setattr(psutil.Process, "num_threads", refuses)
    processes = (("member a", os.getppid()), ("soak", os.getpid()))
    gauges = Gauges(lambda: processes, every_s=60.0, on_sample=seen.append)
    gauges.sample()
    gauges.sample()
    assert [sorted(sample) for sample in seen] == [["soak"], ["soak"]]
    (failure,) = gauges.failures
    assert failure.startswith("member a cannot be measured: AccessDenied")


@pytest.mark.usefixtures("clock")
def test_a_gauge_that_fails_reports_the_reason_and_continues():
    seen, continued = [], threading.Event()

    def breaks_once(sample):
        seen.append(sample)
        if len(seen) == 1:
            raise OSError("disk full")
        continued.set()

    gauges = Gauges(lambda: (("soak", os.getpid()),), every_s=0.01, on_sample=breaks_once)
    gauges.start()
    assert continued.wait(180)
    gauges.stop()
    assert gauges.failures == ("sampling the processes failed: OSError: disk full",)
