"""What reasons are made of: the group before, the answer, and the steps between, looked at again.

Nothing is recorded while a strategy runs. Strategies are pure, so their steps are taken once more
when somebody asks, and only believed if they lead to the very answer that is to be explained; an
answer from elsewhere (a user's strategy, a file) is explained by what can be seen of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    Bands,
    FloatArray,
    GroupState,
    IntArray,
    RacksByTask,
    TaskAssignment,
    actives_now,
    find_strategy,
    homes,
    place_stateless,
    target_actives,
    targets,
    thread_bands,
    with_fresh_stateless,
    with_rack_costs,
    work_of,
)

# Strategies whose steps are taken again, with their own rack costs: traffic and non-overlap.
_COSTS = {"high_availability": (10, 1), "sticky": (1, 10)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Where a strategy of ours wants everything in the end.

    Attributes:
        target: int [T], the client where each active task belongs.
        level: int [T], the same before racks were looked at.
        home: int [T], where each stateful task is best left alone, or NOBODY.
        standbys: (task, client) pairs of standbys in the end; None where that is not known.
        why: how the targets come about, where that is the same for all tasks.
    """

    target: IntArray
    level: IntArray
    home: IntArray
    standbys: frozenset[tuple[int, int]] | None
    why: str = ""


def plan_of(state: GroupState, assignment: TaskAssignment, strategy: str) -> Plan | None:
    """The steps that led to this answer; None if the strategy has none or they lead elsewhere."""
    steps = {"kafka_high_availability": _kafka_steps} | dict.fromkeys(_COSTS, _own_steps)
    if strategy not in steps:
        return None
    again = find_strategy(strategy)(state)
    if (again.active != assignment.active).any() or again.standbys != assignment.standbys:
        return None
    return steps[strategy](state, assignment, strategy)


def _kafka_steps(state: GroupState, assignment: TaskAssignment, strategy: str) -> Plan:
    """Kafka deals all tasks first, and then starts them where their state is."""
    from assignor.placement.jvm import (  # noqa: PLC0415 few ask for it
        KafkaGroup,
        KafkaRacks,
        assign_stateful,
    )

    del strategy
    group = KafkaGroup.of(state)
    assign_stateful(state, group, KafkaRacks.of(state, group))
    target = assignment.active.copy()
    for held, client in zip(group.active, group.clients, strict=True):
        target[sorted(held)] = client
    return Plan(
        target=target,
        level=target,
        home=state.owner,
        standbys=None,
        why="Kafka deals all tasks anew, wherever they ran, and levels the clients",
    )


def _own_steps(state: GroupState, assignment: TaskAssignment, strategy: str) -> Plan | None:
    traffic, non_overlap = _COSTS[strategy]
    state = with_rack_costs(state, traffic=traffic, non_overlap=non_overlap)
    level = target_actives(state)
    place_stateless(state, level)
    target, standbys = targets(state, evens_out=strategy == "high_availability")
    home = homes(state)
    now = target
    if strategy == "high_availability":
        stateful = np.where(state.stateful, target, NOBODY)
        runs = actives_now(state, stateful, home)
        target = with_fresh_stateless(state, target, runs)
        now = np.where(state.stateful, runs, target)
    if (now != assignment.active).any():
        return None
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return Plan(target=target, level=level, home=home, standbys=frozenset(pairs))


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """A group, an answer, and quick looks at both. Tasks and clients are indexes.

    Attributes:
        state: the group before.
        assignment: the answer.
        plan: the steps between, where they are known.
        names: one name a client, for sentences.
    """

    state: GroupState
    assignment: TaskAssignment
    plan: Plan | None = None
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
        pairs = None if self.plan is None else self.plan.standbys
        found: dict[int, list[int]] = {}
        for task, client in sorted(pairs or ()):
            found.setdefault(task, []).append(client)
        return found

    @cached_property
    def _lags(self) -> dict[int, dict[int, int]]:
        """Task -> client -> lag, filled as tasks are looked at."""
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
        plan, clients = self.plan, len(self.threads)
        active = self.assignment.active if plan is None else plan.target
        pairs = None if plan is None else plan.standbys
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
        state, plan, owner = self.state, self.plan, self.owner(task)
        if plan is None or owner == NOBODY:
            return False
        stays = (state.owner == owner) & (plan.target == owner) & state.stateful
        ends = state.end_offset_sums[stays & (state.subtopology == state.subtopology[task])]
        return bool(len(ends) and (ends >= state.end_offset_sums[task]).all())

    def work(self, place: IntArray, client: int) -> float:
        """Work a thread of the client, of stateful tasks placed like this."""
        weights = self.state.weights
        mine = self.state.stateful & (place == client)
        total = float(mine.sum() if weights is None else weights[mine].sum())
        return total / max(1, self.threads[client])

    def name(self, client: int) -> str:
        """How sentences call the client."""
        return (self.names or self.state.clients)[client]

    def owner(self, task: int) -> int:
        """The client that ran the task, or NOBODY."""
        return int(self.state.owner[task])

    def target(self, task: int) -> int:
        """Where the task belongs in the end; NOBODY where that is not known."""
        return NOBODY if self.plan is None else int(self.plan.target[task])

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
        """Records that the client has to read before it has the task's state; 0 if not known."""
        return self.lacks(task, client) or 0

    def lacks(self, task: int, client: int) -> int | None:
        """The same; None where it is not known."""
        lag = self.lag(task, client)
        lag = self._ends[task] if lag is None or lag == LAG_UNKNOWN else lag
        return None if lag == LAG_UNKNOWN else max(lag, 0)

    def said_restore(self, task: int, client: int) -> str:
        """The same in words."""
        lacks = self.lacks(task, client)
        how_many = "an unknown number of" if lacks is None else f"{lacks:,}"
        return f"{how_many} records to restore"

    def said_end(self, task: int) -> str:
        """How many records all of the task's state is, in words."""
        end = self._ends[task]
        return "an unknown number of records" if end == LAG_UNKNOWN else f"{end:,} records"

    def said_lag(self, task: int, client: int) -> str:
        """The lag in words: running, unknown, a number, or no state."""
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
    name: Callable[[str], str] | None = None,
) -> Facts:
    """Facts about an answer.

    Args:
        state: the group before.
        assignment: what it was given; valid.
        strategy: name of the strategy that gave it; without one only what can be seen is said.
        name: how sentences call a client, from its process id; the id itself when missing.
    """
    names = tuple(map(name, state.clients)) if name else state.clients
    plan = plan_of(state, assignment, strategy)
    return Facts(state=state, assignment=assignment, plan=plan, names=names)
