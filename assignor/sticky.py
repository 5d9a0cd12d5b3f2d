"""`sticky`: keep what you have, within bands that keep threads equal; no warm-ups.

For users who would rather restore once than move twice (KIP-54's idea for partitions, here for
tasks): every task goes where it belongs at once, and no follow-up rebalance is asked for.
"""

from assignor.bands import quotas
from assignor.state import GroupState, TaskAssignment
from assignor.targets import targets, with_rack_costs

__all__ = ["quotas", "sticky"]


def sticky(state: GroupState) -> TaskAssignment:
    """Place every task sticky and balanced by task and by thread; standbys on the least loaded.

    O((T + C + N) log C) time, O(T + C + N) memory.
    """
    active, standbys = targets(with_rack_costs(state, traffic=1, non_overlap=10))
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(active=active, standbys=tuple(pairs), warnings=standbys.warnings)
