"""The leader with all its parts: what an application, an adapter or a simulator calls.

`parts_of` looks up once what a release has: a native leader follows topology changes, finalized
levels and the routing view; an emulated leader of Kafka has none of them (`kafka_releases`). The
stages (`assign`) do not ask for the release again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from assignor.rebalance.forms.asking import NO_TOPOLOGIES
from assignor.rebalance.leader.assign import Replies, lead
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory
from assignor.rebalance.leader.generation import read_group
from assignor.rebalance.leader.knowledge import LeaderInputs, LeaderMemory, LeaderSettings
from assignor.rebalance.leader.members import GroupMember
from assignor.rebalance.leader.parts.absent import LeaderParts
from assignor.rebalance.leader.parts.finalized_levels import agree_levels
from assignor.rebalance.leader.parts.kafka_releases import lead_as_kafka
from assignor.rebalance.leader.parts.knowledge import NOTHING_KNOWN, LeaderKnowledge
from assignor.rebalance.leader.parts.rolling_topologies import read_rolling_topologies
from assignor.rebalance.leader.parts.routing_views import view_fields
from encoding import View
from probing import RebalanceProtocol


class GroupAnswer(Replies):
    """The replies of a leader with all its parts."""

    @property
    def claims(self) -> ClaimMemory:
        """The next `LeaderKnowledge.claims`, once this answer has arrived at the leader itself."""
        return self.memory.claims

    def remembered(self) -> LeaderKnowledge:
        """Return what this leader keeps for the next rebalance."""
        known = _values(LeaderMemory, self.memory)
        known["topologies"] = self.memory.topologies or NO_TOPOLOGIES
        return LeaderKnowledge(**known)


def assign_group(
    settings: LeaderSettings,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    knowledge: LeaderKnowledge = NOTHING_KNOWN,
    held_view: View | None = None,
) -> GroupAnswer:
    """Decide the versions, place the tasks, write the answers.

    Args:
        settings: release, topology, configuration and strategy.
        members: every member of the generation, this leader included.
        partition_counts: source topic -> partitions; subtopologies of a missing topic wait.
        knowledge: end offsets, lags of the previous rebalance, the time: what the leader knows.
        held_view: the routing view that this leader got as a member, for deltas against it.

    Raises:
        LeaderRefused: a leader of this release fails on the group's versions, as Kafka's did.
        TaskAssignmentError: the topology does not fit the partition counts, or no answers pass
            the checks.
    """
    memory = LeaderMemory(**_values(LeaderMemory, knowledge))
    is_native = settings.release.is_native
    group = read_group(
        settings,
        parts_of(settings, knowledge, held_view),
        members,
        partition_counts,
        memory=memory if is_native else replace(memory, claims=NO_CLAIMS),
        inputs=LeaderInputs(**_values(LeaderInputs, knowledge)),
    )
    replies = lead(group) if is_native else lead_as_kafka(group)
    return GroupAnswer(**_values(Replies, replies))


def parts_of(
    settings: LeaderSettings, knowledge: LeaderKnowledge, held_view: View | None
) -> LeaderParts:
    """Return what a leader of this release has; see `assign_group` for the arguments."""
    release = settings.release
    if not release.is_native:
        is_eager = release.rebalance_protocol is RebalanceProtocol.EAGER
        return LeaderParts(withholds=not is_eager)
    return LeaderParts(
        topologies=partial(read_rolling_topologies, settings.carried, knowledge),
        levels=partial(agree_levels, knowledge.levels, knowledge.persistent_version),
        views=partial(view_fields, held_view),
    )


def _values(kind: type, value: object) -> dict[str, Any]:
    """The values of the fields of a dataclass, by name."""
    return {each.name: getattr(value, each.name) for each in fields(kind)}
