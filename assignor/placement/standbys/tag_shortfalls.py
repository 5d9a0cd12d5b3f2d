"""What client tags ask for and a placement does not give (KIP-708), as numbers and as sentences.

How copies come to be apart is `copies_apart.Spread`'s work; here a finished placement is judged,
whoever made it. Kafka is silent about it: when no client differs in every key, it gives up on all
of them.
"""

import numpy as np

from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.state import GroupState, IntArray

_NAMED = 3
Pairs = tuple[tuple[int, int], ...]


def shortfalls(
    state: GroupState, active: IntArray, standbys: Pairs
) -> tuple[tuple[int, str, int, int], ...]:
    """Tasks whose copies are on fewer values of a key than copies or values would allow.

    Returns:
        (task, key, values that the copies are on, values possible for this key alone), sorted.
    """
    spread = Spread.of(state)
    rows = zip(spread.keys, spread.codes.tolist(), spread.distinct, strict=True)
    by_key = [(key, codes, distinct) for key, codes, distinct in rows if key is not None]
    found = []
    for task, held in _holders(state, active, standbys).items():
        for key, codes, distinct in by_key:
            have, could = len({codes[client] for client in held}), min(len(held), distinct)
            if have < could:
                found.append((task, key, have, could))
    return tuple(sorted(found))


def tag_warnings(state: GroupState, active: IntArray, standbys: Pairs) -> tuple[str, ...]:
    """What the tags ask for and this placement does not give, as sentences: which task, which key.

    The first tasks of each key are named and the others counted.
    """
    if not state.config.rack_aware_assignment_tags or not state.config.num_standby_replicas:
        return ()
    warnings = []
    by_key: dict[str, list[tuple[int, int, int]]] = {}
    for task, key, have, could in shortfalls(state, active, standbys):
        by_key.setdefault(key, []).append((task, have, could))
    for key in state.config.rack_aware_assignment_tags:
        values = {dict(tags).get(key) for tags in state.tags}
        if values == {None}:
            warnings.append(f"no client has the tag {key}; set client.tag.{key} on all of them")
        lacking = by_key.get(key, [])
        if not lacking:
            continue
        told = ", ".join(
            f"{state.tasks[task]} on {have} of {could}" for task, have, could in lacking[:_NAMED]
        )
        rest = len(lacking) - _NAMED
        more = f" and {rest} more task{'s' * (rest > 1)}" if rest > 0 else ""
        warnings.append(
            f"copies are on fewer values of tag {key} than asked for: {told}{more}; "
            f"start clients with other values of {key}"
        )
    return tuple(warnings)


def _holders(state: GroupState, active: IntArray, standbys: Pairs) -> dict[int, list[int]]:
    """Clients with a copy of each stateful task, the active one first."""
    holders = {task: [int(active[task])] for task in np.flatnonzero(state.stateful).tolist()}
    for task, client in sorted(standbys):
        holders[task].append(client)
    return holders
