"""Facts that reasons are made of: the group before, the answer, and the strategy's trace of it.

A strategy records a trace when it is asked (`assignor.placement.run_with_trace`). An answer without
one (of a user's strategy, or of a file that no strategy here reproduces) is explained by the group
and the answer alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    STRATEGIES,
    Bands,
    FloatArray,
    GroupState,
    IntArray,
    RacksByTask,
    TaskAssignment,
    Trace,
    find_strategy,
    run_with_trace,
    thread_bands,
    work_of,
)


def trace_of(state: GroupState, assignment: TaskAssignment, strategy: str) -> Trace | None:
    """The trace of the strategy of that name, if it gives this group this very answer.

    None for another answer, for strategies that record nothing, and for unknown names.
    """
    if strategy not in STRATEGIES:
        return None
    answer, trace = run_with_trace(state, find_strategy(strategy))
    is_same = np.array_equal(answer.active, assignment.active)
    return trace if is_same and answer.standbys == assignment.standbys else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """A group, an answer, and values derived from both. Tasks and clients are indexes.

    Attributes:
        state: the group before.
        assignment: the answer.
        trace: what the strategy decided on the way, where that is known.
        names: one name a client, for sentences.
    """

    state: GroupState
    assignment: TaskAssignment
    trace: Trace | None = None
    names: tuple[str, ...] = field(default=())

    @cached_property
    def active(self) -> list[int]:
        """The client of each active task."""
        found: list[int] = self.assignment.active.tolist()
        return found

    @cached_property
    def copies(self) -> dict[int, list[int]]:
        """Task -> clients of its standbys and warm-ups, ascending."""
        found: dict[int, list[int]] = {}
        for task, client in sorted(self.assignment.standbys):
            found.setdefault(task, []).append(client)
        return found

    @cached_property
    def warmups(self) -> frozenset[tuple[int, int]]:
        """(task, client) of the copies beyond num.standby.replicas."""
        return frozenset(self.assignment.warmups)

    @cached_property
    def standbys_in_the_end(self) -> dict[int, list[int]]:
        """Task -> clients where its standbys belong, ascending; empty where not known."""
        pairs = None if self.trace is None else self.trace.standbys
        found: dict[int, list[int]] = {}
        for task, client in sorted(pairs or ()):
            found.setdefault(task, []).append(client)
        return found

    @cached_property
    def _lags(self) -> dict[int, dict[int, int]]:
        """Task -> client -> lag, filled on demand."""
        return {}

    @cached_property
    def _ends(self) -> list[int]:
        found: list[int] = self.state.end_offset_sums.tolist()
        return found

    @cached_property
    def extra(self) -> int:
        """Copies beyond num.standby.replicas: what counts against max.warmup.replicas."""
        wanted = self.state.config.num_standby_replicas
        return sum(max(0, len(clients) - wanted) for clients in self.copies.values())

    @cached_property
    def threads(self) -> list[int]:
        """Capacity of each client."""
        found: list[int] = self.state.capacity().tolist()
        return found

    @cached_property
    def bands(self) -> Bands:
        """Stateful tasks that each client may hold so that threads differ by one at most."""
        return thread_bands(self.state.capacity(), int(self.state.stateful.sum()))

    @cached_property
    def stateful_now(self) -> IntArray:
        """Int [C]: stateful tasks that the answer gives each client."""
        return self.counted(self.assignment.active)

    @cached_property
    def actives_now(self) -> IntArray:
        """Int [C]: tasks of all kinds that the answer gives each client."""
        return np.bincount(self.assignment.active, minlength=len(self.threads))

    @cached_property
    def work_now(self) -> FloatArray:
        """Float [C]: work of the active tasks that the answer gives each client, see `work_of`."""
        return work_of(self.state, self.assignment.active)

    @cached_property
    def held_in_the_end(self) -> IntArray:
        """Int [C]: tasks and copies of each client once all is where it belongs, or now."""
        trace, clients = self.trace, len(self.threads)
        active = self.assignment.active if trace is None else trace.target
        pairs = None if trace is None else trace.standbys
        copies = [c for _, c in (self.assignment.standbys if pairs is None else sorted(pairs))]
        return np.bincount(active, minlength=clients) + np.bincount(
            np.array(copies, dtype=np.int64), minlength=clients
        )

    def counted(self, place: IntArray) -> IntArray:
        """Int [C]: stateful tasks that are in each place."""
        where = place[self.state.stateful]
        return np.bincount(where[where != NOBODY], minlength=len(self.state.clients))

    def is_least_to_move(self, task: int) -> bool:
        """Whether no task of its owner and subtopology that stays there has less to restore."""
        state, trace, owner = self.state, self.trace, self.owner(task)
        if trace is None or owner == NOBODY:
            return False
        stays = (state.owner == owner) & (trace.target == owner) & state.stateful
        ends = state.end_offset_sums[stays & (state.subtopology == state.subtopology[task])]
        return bool(len(ends) and (ends >= state.end_offset_sums[task]).all())

    def work(self, place: IntArray, client: int) -> float:
        """Work a thread of the client, of stateful tasks placed like this."""
        weights = self.state.weights
        own_tasks = self.state.stateful & (place == client)
        total = float(own_tasks.sum() if weights is None else weights[own_tasks].sum())
        return total / max(1, self.threads[client])

    def name(self, client: int) -> str:
        """The name of the client in sentences."""
        return (self.names or self.state.clients)[client]

    def owner(self, task: int) -> int:
        """The client that ran the task, or NOBODY."""
        return int(self.state.owner[task])

    def target(self, task: int) -> int:
        """Where the task belongs in the end; NOBODY where that is not known."""
        return NOBODY if self.trace is None else int(self.trace.target[task])

    def client_id(self, client: int) -> str | None:
        """The process id of a client; None for NOBODY."""
        return None if client == NOBODY else self.state.clients[client]

    def lag(self, task: int, client: int) -> int | None:
        """The lag that the client reports for the task; None: it has no state."""
        known = self._lags.get(task)
        if known is None:
            known = self._lags[task] = dict(self.state.copies(task))
        return known.get(client)

    def is_caught_up(self, task: int, client: int) -> bool:
        """Within the acceptable recovery lag, or without state of a task that has hardly any."""
        lag = self.lag(task, client)
        return (
            self._ends[task] if lag is None else lag
        ) <= self.state.config.acceptable_recovery_lag

    def caught_up(self, task: int) -> list[int]:
        """Clients with a reported copy that is caught up and with threads, ascending."""
        limit = self.state.config.acceptable_recovery_lag
        return [c for c, lag in self.state.copies(task) if lag <= limit and self.threads[c] > 0]

    def is_ready_somewhere(self, task: int) -> bool:
        """Whether some client with threads is caught up on the task."""
        anywhere = self.state.end_offset_sums[task] <= self.state.config.acceptable_recovery_lag
        return bool(self.caught_up(task)) or bool(anywhere)

    def to_restore(self, task: int, client: int) -> int:
        """Records that the client has to restore before it can run the task; 0 if not known."""
        return self.lacks(task, client) or 0

    def lacks(self, task: int, client: int) -> int | None:
        """Records that the client has to restore before it can run the task; None if not known."""
        lag = self.lag(task, client)
        lag = self._ends[task] if lag is None or lag == LAG_UNKNOWN else lag
        return None if lag == LAG_UNKNOWN else max(lag, 0)

    def restore_text(self, task: int, client: int) -> str:
        """The records that the client has to restore, as text."""
        lacks = self.lacks(task, client)
        how_many = "an unknown number of" if lacks is None else f"{lacks:,}"
        return f"{how_many} records to restore"

    def end_text(self, task: int) -> str:
        """The records of all of the task's state, as text."""
        end = self._ends[task]
        return "an unknown number of records" if end == LAG_UNKNOWN else f"{end:,} records"

    def lag_text(self, task: int, client: int) -> str:
        """The lag as text: running, unknown, a number, or no state."""
        lag = self.lag(task, client)
        if lag is None:
            return "no state"
        words = {LAG_RUNNING: "running", LAG_UNKNOWN: "unknown"}
        return words.get(lag, f"{lag:,}")

    def crossed(self, racks: RacksByTask | None, task: int, client: int) -> int:
        """Partitions of the task without a replica in the client's rack; unknown ones count 0."""
        rack = self.state.racks[client]
        if rack is None or racks is None:
            return 0
        return sum(1 for names in racks[task] if names and rack not in names)

    def tag_values(self, clients: Sequence[int]) -> int:
        """Different tag values of the configured keys that these clients have, summed over keys."""
        own = [dict(self.state.tags[client]) for client in clients]
        keys = self.state.config.rack_aware_assignment_tags
        return sum(len({tags.get(key) for tags in own}) for key in keys)


def facts_of(
    state: GroupState,
    assignment: TaskAssignment,
    *,
    strategy: str = "",
    trace: Trace | None = None,
    name: Callable[[str], str] | None = None,
) -> Facts:
    """Facts about an answer.

    Args:
        state: the group before.
        assignment: the answer; valid.
        strategy: name of the strategy that gave it, which is asked again for its trace.
        trace: the trace of this answer, where it is known already.
        name: how sentences call a client, from its process id; the id itself when missing.
    """
    names = tuple(map(name, state.clients)) if name else state.clients
    if trace is None and strategy:
        trace = trace_of(state, assignment, strategy)
    return Facts(state=state, assignment=assignment, trace=trace, names=names)
