"""Setting and removing committed offsets of a group that has no members."""

from collections.abc import Collection, Mapping

from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, NoError, RetriableError
from kafka.structs import OffsetAndMetadata

from assignor.adapters.admin.client import Admin, BrokerError
from assignor.adapters.admin.facts import committed_offsets
from assignor.embedding import COMMIT_METADATA
from encoding import TopicPartition


def set_offsets(
    admin: Admin,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    metadata: str = COMMIT_METADATA,
) -> None:
    """Set committed offsets and read them back.

    Args:
        admin: the connected admin client.
        group_id: of the group.
        offsets: the offset of the next record for each partition.
        metadata: that of a member's commit, or "", as operators' tools write.

    Raises:
        BrokerError: the coordinator refuses one, because the group has members for example, or
            another client has set it meanwhile.
        NotAuthorized: as in `Admin.ask`.
    """
    if not offsets:
        return
    rows = {
        KafkaPartition(*partition): OffsetAndMetadata(offset, metadata, None)
        for partition, offset in offsets.items()
    }

    async def ask(client: KafkaAdminClient) -> None:
        found = await client._async_alter_group_offsets(group_id, rows)  # noqa: SLF001 the client's own methods have no deadline
        for partition, error in found.items():
            if error is not NoError and issubclass(error, RetriableError):
                raise error
            if error is not NoError:
                raise BrokerError(
                    f"the committed offset of group {group_id} for {partition.topic}-"
                    f"{partition.partition} cannot be set ({error.__name__}); stop all members of "
                    "the group"
                )

    admin.ask(f"set the offsets of group {group_id}", ask)
    found = committed_offsets(admin, group_id)
    wrong = sorted(each for each, offset in offsets.items() if found.get(each) != offset)
    if wrong:
        raise BrokerError(
            f"group {group_id} has committed offset {found.get(wrong[0])} for {wrong[0].topic}-"
            f"{wrong[0].partition}, and {offsets[wrong[0]]} was set: another client commits for the"
            " group; stop it"
        )


def remove_offsets(admin: Admin, group_id: str, partitions: Collection[TopicPartition]) -> None:
    """Remove committed offsets (KIP-496); those that do not exist are no error.

    Raises:
        BrokerError: the coordinator refuses one, because the group has members for example.
        NotAuthorized: as in `Admin.ask`.
    """
    if not partitions:
        return

    async def ask(client: KafkaAdminClient) -> None:
        named = [KafkaPartition(*each) for each in sorted(partitions)]
        try:
            found = await client._async_delete_group_offsets(group_id, named)  # noqa: SLF001 as above
        except GroupIdNotFoundError:
            return
        for partition, error in found.items():
            if issubclass(error, RetriableError):
                raise error
            if error is not NoError:
                raise BrokerError(
                    f"the committed offset of group {group_id} for {partition.topic}-"
                    f"{partition.partition} cannot be removed ({error.__name__}); stop all members "
                    "of the group"
                )

    admin.ask(f"remove offsets of group {group_id}", ask)
