"""Tasks whose copies are on fewer tag values than possible (KIP-708), as numbers and as warnings.

`copies_apart.Spread` places copies apart; this module checks a finished placement. Kafka does not
warn: if no client differs in every key, it ignores all keys.
"""

import numpy as np

from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.state import GroupState, IntArray

_NAMED = 3
Pairs = tuple[tuple[int, int], ...]


def shortfalls(
    state: GroupState, active: IntArray, standbys: Pairs
) -> tuple[tuple[int, str, int, int], ...]:
    """Tasks whose copies are on fewer values of a key than there are copies or values.

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
    """One warning for each tag key over whose values the copies are not spread.

    It names the first tasks and counts the others.
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
        examples = ", ".join(
            f"{state.tasks[task]} on {have} of {could}" for task, have, could in lacking[:_NAMED]
        )
        rest = len(lacking) - _NAMED
        more = f" and {rest} more task{'s' * (rest > 1)}" if rest > 0 else ""
        warnings.append(
            f"copies are on fewer values of tag {key} than configured: {examples}{more}; "
            f"start clients with other values of {key}"
        )
    return tuple(warnings)


def _holders(state: GroupState, active: IntArray, standbys: Pairs) -> dict[int, list[int]]:
    """Clients with a copy of each stateful task, the active one first."""
    holders = {task: [int(active[task])] for task in np.flatnonzero(state.stateful).tolist()}
    for task, client in sorted(standbys):
        holders[task].append(client)
    return holders
