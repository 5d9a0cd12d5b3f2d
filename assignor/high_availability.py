"""`high_availability`, the default: as few moves as balance allows, and nobody started behind.

The promise is KIP-441's: a task runs on a client that has its state, and moves once the new place
has caught up. The way there is another than Kafka's, which deals all tasks anew and walks towards
that: here what runs well stays.
"""

import numpy as np

from assignor.actives import homes, target_actives
from assignor.bands import place_stateless
from assignor.movements import actives_now, settle
from assignor.standbys import target_standbys
from assignor.state import GroupState, TaskAssignment


def high_availability(state: GroupState) -> TaskAssignment:
    """Place every task; asks for a follow-up rebalance while copies come nearer to being used."""
    target = target_actives(state)
    place_stateless(state, target)
    standbys = target_standbys(state, target)
    now = actives_now(state, np.where(state.stateful, target, -1), homes(state))
    return settle(state, target=target, now=now, standbys=standbys)
