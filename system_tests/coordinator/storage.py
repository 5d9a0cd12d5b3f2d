"""The group's record: what a broker writes to its offsets topic at the end of a rebalance.

All subscriptions and assignments of a generation are *one* record, so a group has a size limit
whatever the number of its members; a leader that answers too much loops its group for ever.
"""

from collections.abc import Mapping

from system_tests.coordinator.group import Group, StoredGroup, StoredMember
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import EventKind

# Key, batch header and the group's own fields; ids and numbers of one member.
_GROUP_OVERHEAD = 160
_MEMBER_OVERHEAD = 24


def record_size(group: Group, assignments: Mapping[str, bytes]) -> int:
    """Bytes of the record that would hold this generation.

    Args:
        group: The group; each member counts with its bytes for the chosen protocol.
        assignments: Member id to assignment bytes.
    """
    size = _GROUP_OVERHEAD + len(group.group_id)
    for member in group.members.values():
        names = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
        size += _MEMBER_OVERHEAD + sum(len(name.encode()) for name in names)
        size += len(member.metadata_for(group.protocol_name))
        size += len(assignments.get(member.member_id, b""))
    return size


def store(turn: Turn, group: Group, assignments: Mapping[str, bytes]) -> bool:
    """Write the group's record; False, and nothing changed, if it is over the limit."""
    size = record_size(group, assignments)
    if size > turn.config.group_record_limit:
        turn.record(
            EventKind.STORE_FAILED,
            group,
            reason=f"record of {size} bytes is over the limit of {turn.config.group_record_limit}",
        )
        return False
    group.stored = StoredGroup(
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id,
        members=tuple(
            StoredMember(
                member_id=m.member_id,
                instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                session_timeout_ms=m.session_timeout_ms,
                rebalance_timeout_ms=m.rebalance_timeout_ms,
                protocols=m.protocols,
                assignment=assignments.get(m.member_id, b""),
            )
            for m in group.members.values()
        ),
    )
    return True
