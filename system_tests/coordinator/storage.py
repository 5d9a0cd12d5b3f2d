"""The group's record, which a broker writes to its offsets topic at the end of a rebalance.

All subscriptions and assignments of a generation are *one* record, so their total size is limited.
If a leader's assignment exceeds the limit, the group rebalances again and again.
"""

from collections.abc import Mapping

from system_tests.coordinator.group import Group, StoredGroup, StoredMember
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import EventKind

# Key, batch header and the group's own fields; ids and numbers of one member.
_GROUP_OVERHEAD = 160
_MEMBER_OVERHEAD = 24


def record_size(group: Group, assignments: Mapping[str, bytes]) -> int:
    """Return the size in bytes of the record of this generation.

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
    """Store the group's record; return False and store nothing if it exceeds the limit."""
    size = record_size(group, assignments)
    if size > turn.config.group_record_limit:
        turn.record(
            EventKind.STORE_FAILED,
            group,
            reason=f"record of {size} bytes exceeds the limit of {turn.config.group_record_limit}",
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
