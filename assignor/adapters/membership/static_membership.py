"""The identity of a static member (KIP-345), which keeps its tasks over a restart."""

from dataclasses import replace
from uuid import UUID, uuid5

from assignor.rebalance import MemberIdentity

# Process ids of static members are names in this space.
_STATIC_MEMBERS = UUID("8a7f0d2c-5b1e-4c39-9d64-30f1b6a27e55")


def static_identity(
    identity: MemberIdentity, group_instance_id: str, *, application_id: str | None
) -> MemberIdentity:
    """Return the identity of a static member (KIP-345).

    Args:
        identity: as it is so far.
        group_instance_id: the consumer's `group.instance.id`.
        application_id: given where the process id is to follow from the two names, so that the
            member is the same client after a restart during which no rebalance ran.
    """
    if application_id is None:
        return replace(identity, instance_id=group_instance_id)
    named = uuid5(_STATIC_MEMBERS, f"{application_id}/{group_instance_id}")
    return replace(identity, instance_id=group_instance_id, process_id=named)
