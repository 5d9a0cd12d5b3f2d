"""Groups played to the end, and what that cost: sums over rounds, and the last placement."""

import heapq
import time

import numpy as np

from assignor import read_problem, validate
from assignor.explain.facts import facts_of
from assignor.explain.moves import restored_records
from assignor.placement import LAG_UNKNOWN
from assignor.placement.bands import thread_bands
from assignor.problems import LagMemory
from assignor.problems.events import play_problem
from assignor.problems.measures import lacking_records
from assignor.problems.rounds import totals


def play(data, strategy):
    """Totals of one problem, its last placement measured, and what was wrong."""
    problem = read_problem(data, memory=LagMemory())
    spent = [0.0]

    def timed(state):
        started = time.perf_counter()
        answer = strategy(state)
        spent[0] += (time.perf_counter() - started) * 1000
        return answer

    phases = list(play_problem(problem, timed))
    rounds = [round_ for _, part in phases for round_ in part]
    last = rounds[-1]
    return {
        **totals(rounds),
        **unavoidable([part[0].state for name, part in phases if name != "bounce"]),
        "restored_records": sum(
            restored_records(facts_of(round_.state, round_.assignment)) for round_ in rounds
        ),
        "active_records": sum(map(active_records, rounds)),
        "converged": not last.assignment.followup,
        "invalid": [wrong for round_ in rounds for wrong in wrong_with(round_)],
        "millis": spent[0],
        "final": final(last.state, last.assignment),
    }


def active_records(round_):
    """Records that active tasks restore before they process, where that is known."""
    state, stateful = round_.state, np.flatnonzero(round_.state.stateful)
    lacking = lacking_records(state, stateful, round_.assignment.active[stateful])
    return int(lacking[lacking != LAG_UNKNOWN].sum())


def unavoidable(states):
    """Unavoidable hand-offs for balance and restores of missing copies, over all events."""
    handoffs = restores = 0
    for state in states:
        bands = thread_bands(state.threads, int(state.stateful.sum()))
        owner = state.owner[state.stateful]
        held = np.bincount(owner[owner >= 0], minlength=len(state.clients))
        over = int(np.maximum(held - bands.high, 0).sum())
        under = int(np.maximum(bands.low - held, 0).sum())
        handoffs += max(over, under - int((owner < 0).sum()))
        wanted = 1 + min(state.config.num_standby_replicas, len(state.clients) - 1)
        present = np.diff(state.copy_start)[state.stateful]
        restores += int(np.maximum(wanted - present, 0).sum())
    return {"handoffs_unavoidable": handoffs, "restores_unavoidable": restores}


def wrong_with(round_):
    extra = round_.moves.warmups - round_.state.config.max_warmup_replicas
    return [
        *map(str, validate(round_.state, round_.assignment)),
        *["too many warm-ups"] * (extra > 0),
    ]


def final(state, assignment):
    """Balance, spread and traffic of one placement, counted as in the public comparison."""
    facts = facts_of(state, assignment)
    threads = np.array(facts.threads)
    usable = threads > 0
    count = np.bincount(assignment.active[state.stateful], minlength=len(threads))
    spread = -(-count[usable] // threads[usable]), count[usable] // threads[usable]
    holders = {
        t: [facts.active[t], *facts.copies.get(t, ())]
        for t in np.flatnonzero(state.stateful).tolist()
    }
    clients, wanted = len(threads), min(state.config.num_standby_replicas, len(threads) - 1)
    racks = {rack for rack in state.racks if rack is not None}
    tags = [
        ({c: dict(state.tags[c]).get(key) for c in range(clients)})
        for key in state.config.rack_aware_assignment_tags
    ]
    rack_short = tag_short = 0
    for held in holders.values():
        if racks and wanted:
            rack_short += max(0, min(1 + wanted, len(racks)) - len({state.racks[c] for c in held}))
        for values in tags:
            distinct = len(set(values.values()))
            tag_short += max(0, min(1 + wanted, distinct) - len({values[c] for c in held}))
    bands = thread_bands(state.capacity(), int(count.sum()))
    return {
        "above_share": int(np.maximum(count - bands.high, 0).sum()),
        "stateful_thread_diff": int(spread[0].max() - spread[1].min()),
        "active_cross_rack": sum(
            facts.crossed(state.partition_racks, t, c) for t, c in enumerate(facts.active)
        ),
        "standby_cross_rack": sum(
            facts.crossed(state.changelog_racks, t, c) for t, c in assignment.standbys
        ),
        "rack_shortfall": rack_short,
        "tag_shortfall": tag_short,
        "failover_worst": failover(state, holders, count.tolist()),
        "is_free": not racks and not tags,
        "failover_best": failover_best(state),
        "tasks_a_client": int(state.stateful.sum()) / max(1, int(usable.sum())),
    }


def failover(state, holders, count):
    """Worst load of a survivor after one crash over the average of the survivors (at least 1)."""
    threads = state.capacity().tolist()
    if not any(len(held) > 1 for held in holders.values()) or len(threads) < 2:
        return 0.0
    worst, total = 0.0, sum(threads)
    for crashed, own in enumerate(threads):
        if total == own:
            continue
        load = list(count)
        for held in holders.values():
            heirs = [c for c in held[1:] if threads[c] > 0]
            if held[0] == crashed and heirs:
                load[min(heirs, key=lambda c: (load[c] / threads[c], state.clients[c]))] += 1
        left = [load[c] / n for c, n in enumerate(threads) if c != crashed and n > 0]
        worst = max(worst, max(left) / max(1.0, len(holders) / (total - own)))
    return round(worst, 3)


def failover_best(state):
    """No placement is better: whole tasks on whole clients, after the worst crash."""
    threads = state.capacity().tolist()
    tasks, best = int(state.stateful.sum()), 0.0
    for crashed, own in enumerate(threads):
        survivors = [n for c, n in enumerate(threads) if c != crashed and n > 0]
        if not survivors:
            continue
        heap = [(1 / n, n, 1) for n in survivors]
        for _ in range(tasks):
            _, n, count = heapq.heappop(heap)
            heapq.heappush(heap, ((count + 1) / n, n, count + 1))
        top = max((count - 1) / n for _, n, count in heap)
        best = max(best, top / max(1.0, tasks / (sum(threads) - own)))
    return best


def play_all(problems, strategy):
    """Name -> figures of each problem."""
    return {data["name"]: play(data, strategy) for data in problems}
