"""What a group keeps in topics: its feature log, and its memory of reached topology versions.

A change is complete when all in-sync replicas have it and it has been read back.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from assignor.adapters.admin.client import Admin
from assignor.adapters.admin.compacted_topic import CompactedTopic
from assignor.levels.log import (
    NO_MINIMUMS,
    Note,
    ReachedView,
    TopicChange,
    TopicView,
    change_record,
    check_counted,
    leader_note,
    reached_record,
    reached_topic_name,
    read_reached_topic,
    read_topic,
    topic_name,
)
from assignor.stores import StoreError
from probing.features import LevelRange, NodeSupport, raised_minimums
from probing.topologies import Reached, lacks, newest_memory


class FeatureTopic:
    """The feature log of one group.

    Args:
        admin: the connected admin client; its time limit applies to each read and each change.
        group: the group id.
    """

    def __init__(self, admin: Admin, group: str) -> None:
        self._name = topic_name(group)
        self._topic = CompactedTopic(admin, self._name)

    def look(self) -> TopicView:
        """Return the state in the topic; an empty state if the topic does not exist.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
            StoreError: a later release wrote it.
        """
        return read_topic(self._topic.records(), topic=self._name)

    def change(
        self,
        view: TopicView,
        levels: Mapping[str, int],
        note: Note,
        members: Mapping[str, Mapping[str, LevelRange]],
        *,
        minimums: Mapping[str, int] = NO_MINIMUMS,
    ) -> TopicChange:
        """Write a change of the state in `view`; it is effective when this returns.

        Raises:
            BrokerError, NotAuthorized: as in `look`; read again to see whether it is effective.
            StoreError: a level is unknown, or a concurrent change came first.
        """
        change = change_record(
            view, levels, note, nonce=uuid4().hex, members=members, minimums=minimums
        )
        self._topic.write([(change.key, change.value)])
        after = self.look()
        check_counted(after, change)
        self._topic.write([(key, None) for key in after.stale])
        return change

    def raise_minimums(self, nodes: Sequence[NodeSupport]) -> Mapping[str, int]:
        """Raise each minimum that all members support (KIP-584); return the raised minimums.

        Args:
            nodes: every member, with what it supports.

        Raises:
            BrokerError, NotAuthorized, StoreError: as in `change`.
        """
        view = self.look()
        minimums = raised_minimums(view.state.levels, view.state.minimums, nodes)
        if minimums:
            members = {str(node.node_id): node.ranges for node in nodes}
            self.change(view, {}, leader_note(minimums), members, minimums=minimums)
        return minimums


class ReachedTopic:
    """The memory of reached topology versions of one group.

    Args:
        admin: the connected admin client; its time limit applies to each read and each write.
        group: the group id.
    """

    def __init__(self, admin: Admin, group: str) -> None:
        self._name = reached_topic_name(group)
        self._topic = CompactedTopic(admin, self._name)

    def look(self) -> ReachedView:
        """Return the memory in the records that this release reads; empty without the topic.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
        """
        return read_reached_topic(self._topic.records(), topic=self._name)

    def whole(self) -> ReachedView:
        """Return the memory in the topic, to change it.

        Raises:
            BrokerError, NotAuthorized: as in `look`.
            StoreError: a record has a layout of a later release.
        """
        view = self.look()
        if view.later:
            raise StoreError(
                f"topic {self._name} is not changed: {'; '.join(view.later)}; use the later release"
                " that wrote it; if none did, delete it: write its key without a value"
            )
        return view

    def remember(self, memory: Mapping[bytes, Reached]) -> None:
        """Add a memory to that of the topic; of each form, the greater entry stays.

        The record has at most `MOST_ENTRIES` entries, those of `memory` first. Records with others
        stay.

        Raises:
            BrokerError, NotAuthorized, StoreError: as in `whole`; nothing is written.
        """
        before = self.whole().memory
        if not lacks(before, memory):
            return
        merged = newest_memory(before, memory, first=memory.keys())
        self._topic.write([reached_record(merged, nonce=uuid4().hex)])
        after = self.look()
        if not after.later:
            self._topic.write([(key, None) for key in after.stale])
