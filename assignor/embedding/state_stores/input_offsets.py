"""How far the states of tasks have their input, against the input as it is now.

A task that is taken over, and one that gets records which its state has already, is compared with
its input by the table of `assignor.embedding.input_rules`. What can be committed is the position of
the client, if all records before it are processed: behind the control records of transactions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any
from uuid import UUID

from assignor.embedding.input_facts import Held, InputFacts
from assignor.embedding.input_rules import settle
from assignor.embedding.state_stores.access import ChangelogAccess, InputState
from assignor.embedding.state_stores.copies import TaskCopy
from assignor.embedding.state_stores.held_input import HeldInput
from assignor.embedding.state_stores.layout import StoreLayout
from assignor.embedding.state_stores.records import Owner
from assignor.rebalance import PartitionsByTask
from encoding import TaskId, TopicPartition


class InputOffsets:
    """Input offsets of the tasks of one member.

    Args:
        access: to the cluster.
        group_id: of the application.
        layout: of the stores.
        held: records that are not processed.

    Attributes:
        settled: input partitions that were sought, whose state is to be compared again -> whether
            the log says why.
        topic_ids: topic -> id of the topic that the records are of, where that is known.
    """

    def __init__(
        self, access: ChangelogAccess, group_id: str, layout: StoreLayout, held: HeldInput
    ) -> None:
        self._access = access
        self._group_id = group_id
        self._layout = layout
        self._held = held
        # Task -> the claim for which its input was compared.
        self._compared: dict[TaskId, Owner] = {}
        # Partition -> the last record that was passed over, until one is processed.
        self._passed: dict[TopicPartition, int] = {}
        self._inputs: PartitionsByTask = {}
        self._returned: dict[Any, int] = {}
        self.settled: dict[TopicPartition, bool] = {}
        self.topic_ids: Mapping[str, UUID] = {}
        self._made_anew: set[UUID | None] = set()

    def take_over(
        self, copies: Iterable[TaskCopy], inputs: PartitionsByTask, *, are_committed: bool = True
    ) -> None:
        """Compare the states of tasks that have been claimed since the last call with their input.

        So are partitions that were sought, and those of which a state gets its first record: the
        topic may have been made anew since.

        Args:
            copies: the tasks that run.
            inputs: task -> input partitions of the assignment.
            are_committed: whether all is that `committable` has returned; else it returns it again.

        Raises:
            ClusterUnavailable: the cluster does not answer; call it again.
            MemberStopped: it is not known up to where a state has its input.
        """
        if inputs is not self._inputs or not are_committed:
            # What was committed before a rebalance may have been refused in it.
            self._inputs, self._returned = inputs, {}
        # A position that was lost is committed where it is now, also if that is lower.
        self._returned = {p: at for p, at in self._returned.items() if p not in self.settled}
        kept = []
        for copy in copies:
            if copy.replicas:
                kept.append(copy)
            elif sought := self.settled.keys() & copy.inputs.keys():
                # No state says how far the task is: the position of the client does.
                copy.forget_inputs(sought)
                self._forget_settled(sought)
        wanted = {copy.task: self._to_compare(copy) for copy in kept}
        if not any(wanted.values()):
            return
        states = self._access.input_state(self._group_id, sorted(chain(*wanted.values())))
        for copy in kept:
            own = {p: states[p] for p in wanted[copy.task] if p in states}
            self._settle(copy, own, is_taken_over=not self._is_compared(copy))
            self._compared[copy.task] = copy.owner
        self._forget_settled(chain(*wanted.values()))

    def _forget_settled(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self.settled.pop(each, None)

    def _is_compared(self, copy: TaskCopy) -> bool:
        return self._compared.get(copy.task) == copy.owner

    def _to_compare(self, copy: TaskCopy) -> list[TopicPartition]:
        """Return the input partitions with which a state is to be compared now."""
        own = self._inputs.get(copy.task, ())
        return [
            each
            for each in own
            if not self._is_compared(copy)
            or each in self.settled
            or (each not in copy.inputs and self._held.has(copy.task, each))
        ]

    def look(self, copy: TaskCopy, partition: TopicPartition, offset: int) -> None:
        """Compare the state of a task with a partition of which the state has a record already.

        Once for each series of such records.

        Raises:
            ClusterUnavailable: the cluster does not answer; call it again.
        """
        if copy.replicas and offset <= self._passed.get(partition, offset):
            states = self._access.input_state(self._group_id, [partition])
            self._settle(copy, states, is_taken_over=False)
        self._passed[partition] = offset

    def _settle(
        self, copy: TaskCopy, states: Mapping[TopicPartition, InputState], *, is_taken_over: bool
    ) -> None:
        """Set a task's input offsets to where reading continues, and take the ids of the topics.

        Args:
            copy: the task.
            states: its input partitions as they are.
            is_taken_over: since the last comparison; else the committed offset may be newer.
        """
        inputs, ids = dict(copy.inputs), dict(copy.commit.topic_ids)
        hidden = copy.hidden_commit if is_taken_over else None
        can_be_new = is_taken_over and copy.is_new
        for partition, now in sorted(states.items(), key=lambda item: item[0]):
            is_new = can_be_new and now.log.start < (now.committed or 0) <= now.log.end
            if partition in inputs or hidden is not None or is_new:
                facts = InputFacts(
                    held=Held.STATE,
                    partition=partition,
                    log=now.log,
                    at=inputs.get(partition),
                    known_id=ids.get(partition.topic),
                    is_taken_over=is_taken_over,
                    is_new=is_new,
                    hidden=None if hidden is None else hidden.inputs.get(partition),
                    committed=now.committed if is_taken_over else None,
                    is_members=now.is_members,
                    is_logged=self.settled.get(partition, False),
                )
                at = settle(facts.once_a_topic(self._made_anew)) or 0
                if not is_new:  # it has none, also if the application seeks
                    inputs[partition] = at
                if facts.has_no_begin and now.log.start <= at <= now.log.end:
                    self._held.read_from(partition, at)
            if now.log.topic_id is not None:
                # Nothing was compared: the first records may be those of a former topic.
                former = None if partition in inputs else self.topic_ids.get(partition.topic)
                ids[partition.topic] = former or now.log.topic_id
        copy.commit = replace(copy.commit, inputs=inputs, topic_ids=ids)

    def processed(self, partition: TopicPartition) -> None:
        """Note that a record is processed."""
        self._passed.pop(partition, None)

    def committable(
        self, tasks: Iterable[TaskId], positions: Mapping[Any, int], done: Mapping[Any, int]
    ) -> dict[Any, int]:
        """Return client's partition -> offset to commit.

        Args:
            tasks: that run.
            positions: client's partition -> its position after the last poll.
            done: client's partition -> first offset that is not processed, where some are.
        """
        running, found = frozenset(tasks), dict(done)
        dropped = self._held.dropped
        for each, at in positions.items():
            if at == self._returned.get(each, -1) and each not in done:
                continue
            task = self._layout.task_of_input(each.topic, each.partition)
            if task in running and each not in dropped and not self._held.has(task, each):
                # Also offset 0: with "latest", a member that has none committed begins at the end.
                if at > found.get(each, self._returned.get(each, -1)):
                    found[each] = at
                self._returned[each] = at
        return found
