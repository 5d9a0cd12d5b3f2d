"""A source topic that was made anew, and the states of several tasks."""

from types import SimpleNamespace
from uuid import UUID

from assignor.embedding.input_facts import LogRange
from assignor.embedding.state_stores.access import InputState
from assignor.embedding.state_stores.input_offsets import InputOffsets
from assignor.embedding.state_stores.records import Commit
from encoding import TopicPartition

OLD, NEW = UUID(int=1), UUID(int=2)


def test_a_topic_made_anew_is_one_warning_whatever_the_number_of_its_tasks(caplog):
    caplog.set_level("INFO")
    now = InputState(log=LogRange(0, 9, NEW))
    access = SimpleNamespace(input_state=lambda _, partitions: dict.fromkeys(partitions, now))
    offsets = InputOffsets(access, "app", None, None)
    for number in range(3):
        partition = TopicPartition("orders", number)
        commit = Commit(topic_ids={"orders": OLD})
        copy = SimpleNamespace(replicas=True, inputs={partition: 5}, commit=commit)
        offsets.look(copy, partition, 0)
        assert copy.commit.inputs == {partition: 0}
    assert [each.levelname for each in caplog.records] == ["WARNING", "INFO", "INFO"]
