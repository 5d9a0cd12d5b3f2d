"""The least restores of any placement of a small group, by CP-SAT.

The only constraints are the bands that `high_availability` keeps: each client's share, rounded down
or up, of the stateful actives and of all copies. `high_availability` has more constraints, so the
result may be lower than what is possible without cold starts.
"""

import random

import numpy as np
from ortools.sat.python import cp_model

from assignor import AssignmentConfig, ClientInput, group_state, high_availability
from assignor.placement import LAG_RUNNING
from assignor.placement.bands import thread_bands
from assignor.problems.rounds import play, totals
from encoding import TaskId

_SECONDS = 10.0


def least_restores(state):
    """Least number of copies placed without state; None if no placement fits the bands.

    Raises:
        RuntimeError: not solved to optimality in time.
    """
    tasks = np.flatnonzero(state.stateful).tolist()
    threads, clients = state.capacity().tolist(), range(len(state.clients))
    replicas = min(state.config.num_standby_replicas, len(state.clients) - 1)
    model = cp_model.CpModel()
    active = {(t, c): model.new_bool_var(f"a{t}_{c}") for t in tasks for c in clients}
    standby = {(t, c): model.new_bool_var(f"s{t}_{c}") for t in tasks for c in clients}
    for t in tasks:
        model.add_exactly_one(active[t, c] for c in clients)
        model.add(sum(standby[t, c] for c in clients) == replicas)
        for c in clients:
            model.add_at_most_one(active[t, c], standby[t, c])
    for places, total in ((active, len(tasks)), (None, len(tasks) * (1 + replicas))):
        bands = thread_bands(np.array(threads), total)
        for c in clients:
            held = [active[t, c] for t in tasks]
            held += [standby[t, c] for t in tasks] if places is None else []
            model.add_linear_constraint(sum(held), int(bands.low[c]), int(bands.high[c]))
    has_state = {(t, c) for t in tasks for c, _ in state.copies(t)}
    missing = [v for both in (active, standby) for pair, v in both.items() if pair not in has_state]
    model.minimize(sum(missing))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = _SECONDS
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise RuntimeError(
            f"{solver.status_name(status)} after {_SECONDS:.0f} s; draw smaller groups"
        )
    return round(solver.objective_value)


def small_group(seed):
    """A settled group of up to 18 stateful tasks and 5 clients, after one event."""
    rng = random.Random(seed)
    sizes = [rng.randint(2, 6) for _ in range(rng.randint(1, 3))]
    tasks = [TaskId(s, p) for s, n in enumerate(sizes) for p in range(n)]
    config = AssignmentConfig(
        num_standby_replicas=rng.choice([0, 1, 1, 2]), max_warmup_replicas=rng.choice([1, 2, 4])
    )
    clients = [
        ClientInput(process_id=f"c{n}", threads=rng.choice([1, 1, 2]))
        for n in range(rng.randint(2, 5))
    ]
    for task in rng.sample(tasks, len(tasks)):
        _give(rng, clients, task, config.num_standby_replicas)
    new = ClientInput(process_id=rng.choice(["a", "c2x", "z"]), threads=rng.choice([1, 1, 2]))
    event = rng.choice(["join", "leave", "replace", "none"])
    if event in {"leave", "replace"} and len(clients) > 1:
        clients.pop(rng.randrange(len(clients)))
    if event in {"join", "replace"}:
        clients.append(new)
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=clients,
        config=config,
        end_offset_sums=dict.fromkeys(tasks, 10**6),
    )


def _give(rng, clients, task, replicas):
    """Place a task's active and its standbys on the least loaded clients, ties at random."""

    def load(at):
        return len(clients[at].lags) / clients[at].threads, rng.random()

    def runs(at):
        return len(clients[at].active_tasks) / clients[at].threads, rng.random()

    places = list(range(len(clients)))
    owner = min(places, key=runs)
    places.remove(owner)
    for at in [owner, *sorted(places, key=load)[:replicas]]:
        client, is_owner = clients[at], at == owner
        clients[at] = ClientInput(
            process_id=client.process_id,
            threads=client.threads,
            active_tasks=client.active_tasks | {task} if is_owner else client.active_tasks,
            lags={**client.lags, task: LAG_RUNNING if is_owner else rng.choice([0, 40, 900])},
        )


def is_level(state, assignment):
    """Whether every client has its share of all copies.

    It may not: actives are placed first, and a client cannot have a standby of its own active task.
    """
    copies = np.bincount(assignment.standby_table()[:, 1], minlength=len(state.clients))
    copies += np.bincount(assignment.active[state.stateful], minlength=len(state.clients))
    bands = thread_bands(state.capacity(), int(copies.sum()))
    return bool((copies >= bands.low).all() and (copies <= bands.high).all())


def compare(seeds):
    """Compare restores of `high_availability` with the least, over groups that fit the bands.

    Returns:
        (restores until settled, least restores, groups, groups left out because their copies end
        outside the bands, which may save restores).
    """
    ours = least = groups = beside = 0
    for seed in seeds:
        state = small_group(seed)
        best = least_restores(state)
        if best is None:
            continue
        rounds = list(play(state, high_availability))
        if not is_level(rounds[-1].state, rounds[-1].assignment):
            beside += 1
            continue
        least += best
        ours += totals(rounds)["restores"]
        groups += 1
    return ours, least, groups, beside
