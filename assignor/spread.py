"""Which clients keep the copies of a task apart: tag keys (KIP-708), and racks after them.

A key asks that the copies of a task, its active one included, sit on as many different values as
there are copies or values. What is on the way to that is never given up for balance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignor.state import BoolArray, GroupState, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Values of the clients, one row a key.

    Attributes:
        codes: int [K, C], the value of each client as a number.
        distinct: number of values of each key, over clients that can hold tasks.
        weights: worth of a new value; tag keys outweigh the rack.
        warnings: what cannot be had.
    """

    codes: IntArray
    distinct: tuple[int, ...]
    weights: tuple[int, ...]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: GroupState) -> "Spread":
        """Keys of the group that have at least two values."""
        usable = state.capacity() > 0
        columns: list[tuple[list[str | None], int]] = []
        keys = state.config.rack_aware_assignment_tags
        warnings = []
        for key in keys:
            values = [dict(tags).get(key) for tags in state.tags]
            columns.append((values, 2 * (len(keys) + 1)))
            if not any(values):
                warnings.append(f"no client has the tag {key!r} that standbys are to spread over")
        columns.append((list(state.racks), 1))
        codes, distinct, weights = [], [], []
        for values, weight in columns:
            number = {v: i for i, v in enumerate(sorted(set(values), key=lambda v: (v is None, v)))}
            code = np.array([number[value] for value in values], dtype=np.int64)
            count = len(set(code[usable].tolist()))
            if count > 1:
                codes.append(code)
                distinct.append(count)
                weights.append(weight)
        return cls(
            codes=np.array(codes, dtype=np.int64).reshape(len(codes), len(state.clients)),
            distinct=tuple(distinct),
            weights=tuple(weights),
            warnings=tuple(warnings),
        )

    @property
    def is_needed(self) -> bool:
        """Whether any key tells clients apart."""
        return bool(self.distinct)

    def fits(self, holders: Sequence[int], has_room: BoolArray) -> BoolArray:
        """Bool [C]: clients that add most to the spread, and of those the ones with room if any.

        Args:
            holders: clients that hold the task already, the active one included.
            has_room: bool [C]; all of `holders` are left out.
        """
        able: BoolArray = np.ones(len(has_room), dtype=np.bool_)
        able[list(holders)] = False
        if not self.distinct:
            able &= has_room
            return able
        gain = np.zeros(len(has_room), dtype=np.int64)
        for code, weight in zip(self.codes, self.weights, strict=True):
            gain += weight * ~np.isin(code, code[list(holders)])
        gain[~able] = -1
        best: BoolArray = gain == gain.max()
        roomy: BoolArray = best & has_room
        return roomy if roomy.any() else best & able

    def keep(
        self,
        candidates: Sequence[int],
        active: int,
        wanted: int,
    ) -> list[int]:
        """Those of the candidates, in order, that leave the greatest spread within reach."""
        kept: list[int] = []
        for client in candidates:
            if len(kept) == wanted:
                break
            left = wanted - len(kept) - 1
            is_fine = True
            for code, distinct in zip(self.codes, self.distinct, strict=True):
                used = {int(code[c]) for c in (active, *kept)}
                missing = min(1 + wanted, distinct) - len(used)
                if int(code[client]) in used and missing > left:
                    is_fine = False
            if is_fine:
                kept.append(client)
        return kept

    def may_replace(self, holders: Sequence[int], old: int, new: int) -> bool:
        """Whether the copy on `old` may move to `new` without fewer different values."""
        for code in self.codes:
            others = {int(code[c]) for c in holders if c != old}
            if int(code[old]) not in others and int(code[new]) in others:
                return False
        return True
