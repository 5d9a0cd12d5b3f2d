"""`high_availability`, the default: as few moves as balance allows, and nobody started behind.

The promise is KIP-441's: a task runs on a client that has its state, and moves once the new place
has caught up. The way there is another than Kafka's, which deals all tasks anew and walks towards
that: here what runs well stays.
"""

import numpy as np

from assignor.actives import homes
from assignor.movements import actives_now, settle
from assignor.state import NOBODY, GroupState, TaskAssignment
from assignor.targets import targets, with_rack_costs


def high_availability(state: GroupState) -> TaskAssignment:
    """Place every task; asks for a follow-up rebalance while copies come nearer to being used."""
    state = with_rack_costs(state, traffic=10, non_overlap=1)
    target, standbys = targets(state, evens_out=True)
    stateful_target = np.where(state.stateful, target, NOBODY)
    now = actives_now(state, stateful_target, homes(state))
    return settle(state, target=target, now=now, standbys=standbys)
