"""The clients that a task could run on, with their lags, loads and racks."""

from dataclasses import dataclass

from assignor.explain.facts import Facts
from assignor.placement import NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A client that could run a task.

    Attributes:
        client: index of the client.
        was_owner: whether it ran the task before.
        lag: LAG_RUNNING, records behind, LAG_UNKNOWN, or None without state.
        is_caught_up: within the acceptable recovery lag.
        stateful: stateful actives that the answer gives it; `low` to `high` is its band.
        actives: actives of all kinds.
        threads: its capacity.
        work: of its actives; their number where tasks have no weights.
        active_crossings, standby_crossings: source and changelog partitions of the task that it
            would read from another rack.
        role: active, standby, warm-up or "" now.
        is_target: whether the task belongs there in the end, as far as known.
    """

    client: int
    was_owner: bool
    lag: int | None
    is_caught_up: bool
    stateful: int
    low: int
    high: int
    actives: int
    threads: int
    work: float
    active_crossings: int
    standby_crossings: int
    role: str
    is_target: bool


def candidates(facts: Facts, task: int) -> list[Candidate]:
    """Return the clients with state of the task, its owner and its target, by client.

    Of the clients without state, which differ only by their load, the least loaded one is included.
    """
    holders = {facts.active[task], facts.owner(task), facts.target(task)} - {NOBODY}
    holders.update(facts.copies.get(task, ()), (c for c, _ in facts.state.copies(task)))
    others = [c for c, n in enumerate(facts.threads) if n > 0 and c not in holders]
    if others:
        holders.add(min(others, key=lambda c: (facts.stateful_now[c] / facts.threads[c], c)))
    return [_candidate(facts, task, client) for client in sorted(holders)]


def _candidate(facts: Facts, task: int, client: int) -> Candidate:
    state = facts.state
    role = "standby" if client in facts.copies.get(task, ()) else ""
    role = "warm-up" if (task, client) in facts.warmups else role
    return Candidate(
        client=client,
        was_owner=facts.owner(task) == client,
        lag=facts.lag(task, client),
        is_caught_up=facts.is_caught_up(task, client),
        stateful=int(facts.stateful_now[client]),
        low=int(facts.bands.low[client]),
        high=int(facts.bands.high[client]),
        actives=int(facts.actives_now[client]),
        threads=facts.threads[client],
        work=float(facts.work_now[client]),
        active_crossings=facts.crossed(state.partition_racks, task, client),
        standby_crossings=facts.crossed(state.changelog_racks, task, client),
        role="active" if facts.active[task] == client else role,
        is_target=facts.target(task) == client,
    )
