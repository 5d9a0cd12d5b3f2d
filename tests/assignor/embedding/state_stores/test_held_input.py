"""Records that wait for the restoration of their tasks."""

from types import SimpleNamespace

from assignor.embedding.state_stores.held_input import HeldInput
from encoding import TaskId, TopicPartition

TASK = TaskId(0, 1)
WORDS = TopicPartition("words", 1)


def records(first, last):
    return [SimpleNamespace(offset=n, timestamp=10 * n) for n in range(first, last + 1)]


def held_offsets(held):
    return [offset for _, offset, _ in held.of_task(TASK)]


def test_records_that_a_client_returns_again_are_held_once_and_the_later_ones_count():
    held = HeldInput(lambda _, partition: TaskId(0, partition))
    held.hold({WORDS: records(3, 6)})
    held.hold({WORDS: []})
    again = records(5, 8)
    held.hold({WORDS: again})
    assert held_offsets(held) == [3, 4, 5, 6, 7, 8]
    assert [record for _, _, record in held.of_task(TASK)][2:] == again
    held.hold({WORDS: records(1, 2)})
    assert held_offsets(held) == [1, 2]


def test_records_without_a_time_come_before_others():
    """kafka-python reads message format v0, from before Kafka 0.10, with the timestamp None."""
    held = HeldInput(lambda _, partition: TaskId(0, partition))
    old = [SimpleNamespace(offset=n, timestamp=None) for n in range(2)]
    held.hold({WORDS: records(0, 1), TopicPartition("old", 1): old})
    assert [record for _, _, record in held.of_task(TASK)][:2] == old


def test_what_is_dropped_is_unread_from_its_first_record_on():
    held = HeldInput(lambda _, partition: TaskId(0, partition))
    held.hold({WORDS: records(3, 6)})
    held.keep_only([TASK])
    assert held.tasks == {TASK}
    assert held.unread() == {}
    held.keep_only([])
    assert held.tasks == frozenset()
    assert held.unread() == {WORDS: 3}
    assert held.unread() == {}
