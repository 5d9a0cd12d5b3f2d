"""The clock, the random generator and the queue of a simulation."""

import pytest

from system_tests.engine import Scheduler


def drawn(scheduler):
    return [scheduler.delay(0, 1000) for _ in range(20)]


def test_the_same_seed_draws_the_same():
    assert drawn(Scheduler(7)) == drawn(Scheduler(7))
    assert drawn(Scheduler(7)) != drawn(Scheduler(8))


def test_delays_stay_within_their_bounds_and_reach_both():
    scheduler = Scheduler(1)
    values = {scheduler.delay(3, 5) for _ in range(200)}
    assert values == {3, 4, 5}


def test_the_earliest_happens_first_and_ties_go_by_order_of_scheduling():
    scheduler = Scheduler(1)
    scheduler.schedule(5, "late", 0, ())
    scheduler.schedule(2, "first", 0, ())
    scheduler.schedule(2, "second", 0, ())
    assert [scheduler.pop().kind for _ in range(3)] == ["first", "second", "late"]
    assert scheduler.now_ms == 5


def test_anything_pending_may_be_taken_out_of_order():
    scheduler = Scheduler(1)
    for kind in ("a", "b", "c"):
        scheduler.schedule(1, kind, 0, ())
    scheduler.take(scheduler.pending()[1])
    assert [pending.kind for pending in scheduler.pending()] == ["a", "c"]
    with pytest.raises(ValueError, match="not in list"):
        scheduler.take(scheduler.pending()[0]._replace(kind="gone"))


def test_a_copy_draws_on_alone_and_draws_the_same():
    scheduler = Scheduler(3)
    drawn(scheduler)
    scheduler.schedule(1, "a", 0, ())
    other = scheduler.copy()
    assert drawn(other) == drawn(scheduler)
    other.pop()
    assert len(scheduler.pending()) == 1


def test_without_a_seed_nothing_is_random():
    scheduler = Scheduler(None)
    assert drawn(scheduler) == [0] * 20
    assert scheduler.choose("xyz") == "x"
    assert scheduler.shuffled([3, 1, 2]) == [3, 1, 2]
    assert not scheduler.happens(1.0)
    assert scheduler.copy().delay(4, 9) == 4
