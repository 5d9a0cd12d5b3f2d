"""The bound of a pause, its terms and its sentence."""

from system_tests.pauses import PartitionPause, PauseBound, Stopped, longest_pause, pause_numbers


def pause(pause_ms, **terms):
    bound = PauseBound(**{"rebalance_ms": 100, **terms}) if terms is not None else None
    return PartitionPause(
        partition="lines-0",
        from_ms=5,
        pause_ms=pause_ms,
        stopped=Stopped.CRASH,
        member="a",
        bound=bound,
    )


def test_only_members_that_leave_without_a_word_make_a_session_pass():
    waits = {stopped for stopped in Stopped if stopped.waits_for_session}
    assert waits == {Stopped.SILENT_STOP, Stopped.CRASH, Stopped.STANDSTILL}


def test_the_bound_is_the_sum_of_its_terms():
    bound = PauseBound(rebalance_ms=1, session_ms=20, restore_ms=300, fault_ms=4000, down_ms=50000)
    assert bound.total_ms == 54321
    assert str(bound) == (
        "54321 ms (rebalance 1, session 20, restore 300, faults 4000, nobody up 50000)"
    )


def test_the_pause_to_name_is_one_past_its_bound_before_a_longer_one_within():
    within, beyond = pause(900, session_ms=1000), pause(101)
    assert (within.is_within, beyond.is_within) == (True, False)
    assert longest_pause((within, beyond)) is beyond
    assert longest_pause((within,)) is within
    assert longest_pause(()) is None


def test_sentence_and_numbers_name_partition_event_and_bound():
    found = pause(101)
    assert str(found) == (
        "lines-0 paused for 101 ms (crash of a); its bound is 100 ms (rebalance 100)"
    )
    numbers = pause_numbers(found)
    assert (numbers["partition"], numbers["pause_ms"], numbers["bound_ms"]) == ("lines-0", 101, 100)
    assert (numbers["stopped_by"], numbers["member"]) == ("crash", "a")
    assert pause_numbers(None) == {}
