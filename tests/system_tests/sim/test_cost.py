"""The cost of a bounce, from a trace made by hand."""

from encoding import TaskId, TopicPartition
from system_tests.sim.cost import cost_of, process_of
from system_tests.sim.events import Ended, Gave, Settled, Took, Wrote

P0, P1 = TopicPartition("lines", 0), TopicPartition("lines", 1)
REST = Settled(1, 1, "a", (("a", 11),))


def took(at_ms, thread, gained, *, restored=0, restore_ms=0):
    return Took(
        at_ms=at_ms,
        thread=thread,
        member_id=thread,
        generation=1,
        received_version=11,
        commonly_supported_version=11,
        used_before=11,
        used_after=11,
        error_code=0,
        partitions=gained,
        gained=gained,
        active_tasks=(),
        standby_tasks=(),
        restored=restored,
        restore_ms=restore_ms,
        restore_limit_ms=restore_ms,
        failure="",
    )


def cost(*trace):
    return cost_of(trace, records_per_second=100)


def test_a_partition_pauses_until_another_has_read_its_state():
    found = cost(
        took(0, "a", (P0, P1)),
        REST,
        Gave(1000, "a", (P0,), (TaskId(0, 0),)),
        took(3000, "b", (P0,), restored=50, restore_ms=500),
    )
    assert (found.pause_ms, found.longest_pause_ms, found.paused_records) == (2500, 2500, 250)
    assert (found.restored, found.moved) == (50, 1)


def test_a_crash_pauses_all_partitions_of_the_thread():
    found = cost(
        took(0, "a", (P0, P1)), REST, Ended(1000, "a", "kill", failed=False), took(1500, "b", (P1,))
    )
    assert (found.pause_ms, found.moved) == (500, 1)


def test_what_comes_back_to_its_process_has_not_moved():
    found = cost(took(0, "a1", (P0,)), REST, Gave(10, "a1", (P0,), ()), took(20, "a2", (P0,)))
    assert (found.moved, found.pause_ms) == (0, 10)
    assert process_of("b12") == "b"


def test_bytes_count_from_the_first_settled_group_on():
    wrote = Wrote(0, "a", 11, 11, 41)
    assert cost(wrote, REST, wrote).bytes == 41
    assert cost(took(0, "a", (P0,), restored=9)).restored == 0
