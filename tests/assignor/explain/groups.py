"""Random groups for reasons, and the claim of each rule, checked by independent code."""

from assignor import AssignmentConfig, ClientInput, group_state
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY
from encoding import TaskId
from tests.assignor.placement.racks.groups import seeded

LIMIT = 100


def draw_group(seed):
    """A random group: clients join, leave or lag; with or without racks, tags and weights."""
    rng = seeded(seed)
    tasks = [TaskId(s, p) for s in range(rng.randint(1, 3)) for p in range(rng.randint(1, 9))]
    stateful = [t for t in tasks if t.subtopology != 1]
    clients = [f"c{n}" for n in range(rng.randint(1, 6))]
    owner = {t: rng.choice([*clients, *clients, None]) for t in tasks}
    racks = rng.random() < 0.4
    lags = {c: {} for c in clients}
    for task in stateful:
        for client in rng.sample(clients, rng.randint(0, min(3, len(clients)))):
            lags[client][task] = rng.choice([0, 5, LIMIT, LIMIT + 1, 5_000, LAG_UNKNOWN])
        if owner[task] and rng.random() < 0.9:
            lags[owner[task]][task] = LAG_RUNNING if rng.random() < 0.8 else 3_000
    replicas = {t: (frozenset(rng.sample(["r0", "r1", "r2"], 2)),) for t in tasks}
    return group_state(
        tasks=tasks,
        stateful_tasks=stateful,
        clients=[
            ClientInput(
                process_id=c,
                threads=rng.choice([0, 1, 1, 1, 2, 3]),
                active_tasks=frozenset(t for t in tasks if owner[t] == c),
                lags=lags[c],
                rack=rng.choice(["r0", "r1", "r2"]) if racks else None,
                tags=(("zone", rng.choice("ab")),),
            )
            for c in clients
        ],
        config=AssignmentConfig(
            num_standby_replicas=rng.randint(0, 2),
            acceptable_recovery_lag=LIMIT,
            max_warmup_replicas=rng.randint(1, 3),
            rack_aware_assignment_strategy=rng.choice(["none", "min_traffic"]) if racks else "none",
            rack_aware_assignment_tags=("zone",) if rng.random() < 0.3 else (),
        ),
        end_offset_sums={t: rng.choice([0, 50, 10_000, 10_000]) for t in tasks},
        weights={t: rng.choice([1.0, 5.0]) for t in tasks} if rng.random() < 0.2 else None,
        partition_racks=replicas if racks else None,
        changelog_racks=replicas if racks else None,
    )


def group_of_one(*clients, lag=1_000_000, replicas=0, **config):
    """A group of one stateful task."""
    task = TaskId(0, 0)
    return group_state(
        tasks=[task],
        stateful_tasks=[task],
        clients=clients,
        config=AssignmentConfig(num_standby_replicas=replicas, **config),
        end_offset_sums={task: lag},
    )


def holder(name, lag, *, runs=False, threads=1):
    """A client with, or at None without, state of the task of `group_of_one`."""
    tasks = frozenset([TaskId(0, 0)]) if runs else frozenset()
    lags = {} if lag is None else {TaskId(0, 0): lag}
    return ClientInput(process_id=name, threads=threads, active_tasks=tasks, lags=lags)


class TaskFacts:
    """Facts about one task, computed from the state and the assignment only."""

    def __init__(self, state, assignment, task):
        self.state, self.task = state, task
        self.lags = dict(state.copies(task))
        self.owner, self.now = int(state.owner[task]), int(assignment.active[task])
        self.copies = [c for t, c in assignment.standbys if t == task]
        self.end = int(state.end_offset_sums[task])
        self.threads = state.capacity().tolist()
        self.wanted = state.config.num_standby_replicas

    def hot(self, client):
        return self.lags.get(client, self.end) <= LIMIT

    def anyone_hot(self):
        some = any(lag <= LIMIT and self.threads[c] > 0 for c, lag in self.lags.items())
        return some or self.end <= LIMIT

    def moved(self):
        return self.owner not in {NOBODY, self.now}


ACTIVE_CLAIMS = {
    "stays until its target has caught up": lambda w: w.now == w.owner,
    "kept by its owner": lambda w: w.now == w.owner and w.hot(w.now),
    "stays with the existing state": lambda w: w.now == w.owner and not w.anyone_hot(),
    "stays although behind": lambda w: w.now == w.owner and not w.hot(w.now) and w.anyone_hot(),
    "taken over by a caught-up copy": lambda w: (
        w.owner == NOBODY and w.lags.get(w.now, LIMIT + 1) <= LIMIT
    ),
    "started, little to restore": lambda w: w.owner == NOBODY and w.end <= LIMIT,
    "taken over by a copy that is behind": lambda w: w.owner == NOBODY and w.lags[w.now] > LIMIT,
    "started without state": lambda w: w.owner == NOBODY and w.now not in w.lags,
    "leaves a client without threads": lambda w: w.moved() and w.threads[w.owner] == 0,
    "failed over to a caught-up copy": lambda w: w.moved() and w.hot(w.now) and not w.hot(w.owner),
    "moved to a caught-up client": lambda w: w.moved() and w.hot(w.now) and w.hot(w.owner),
    "moved to a copy that is behind": lambda w: w.moved() and w.lags[w.now] > LIMIT,
    "moved, state restored": lambda w: w.moved() and w.now not in w.lags and not w.hot(w.now),
    "stateless, kept by its owner": lambda w: w.now == w.owner,
    "stateless, started on a client with free capacity": lambda w: w.owner == NOBODY,
    "stateless, moved": lambda w: w.moved() and w.threads[w.owner] > 0,
}
COPY_CLAIMS = {
    "warms up before the task moves here": lambda w, c: not w.hot(c) and w.now != c,
    "warms up before a standby moves here": lambda w, c: not w.hot(c),
    "extra copy, warms up": lambda w, c: not w.hot(c) and len(w.copies) > w.wanted,
    "kept until another is caught up": lambda w, c: w.hot(c) and c in w.lags,
    "the former owner keeps its state": lambda w, c: w.owner == c != w.now and c in w.lags,
    "standby kept": lambda w, c: c in w.lags,
    "standby moved here": lambda w, c: c not in w.lags and bool(set(w.lags) - {w.now, *w.copies}),
    "standby added": lambda w, c: (
        c not in w.lags and not [o for o in set(w.lags) - {w.now, *w.copies} if w.threads[o] > 0]
    ),
    "client has no threads": lambda w, c: w.threads[c] == 0 and c not in {w.now, *w.copies},
    "no standbys configured": lambda w, c: w.wanted == 0 and c not in {w.now, *w.copies},
    "enough copies elsewhere": lambda w, c: len(w.copies) >= w.wanted and c not in w.copies,
    "given up": lambda w, c: c not in {w.now, *w.copies},
}
