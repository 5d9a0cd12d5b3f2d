"""`sticky`: keep what you have, within bands that keep threads equal; no warm-ups.

For users who would rather restore once than move twice (KIP-54's idea for partitions, here for
tasks): every task goes where it belongs at once, and no follow-up rebalance is asked for.
"""

from assignor.actives import target_actives
from assignor.bands import place_stateless, quotas
from assignor.standbys import target_standbys
from assignor.state import GroupState, TaskAssignment

__all__ = ["quotas", "sticky"]


def sticky(state: GroupState) -> TaskAssignment:
    """Place every task sticky and balanced by task and by thread; standbys on the least loaded.

    O((T + C + N) log C) time, O(T + C + N) memory.
    """
    active = target_actives(state)
    place_stateless(state, active)
    standbys = target_standbys(state, active)
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(active=active, standbys=tuple(pairs), warnings=standbys.warnings)
