"""Times of the assign call: of the scale set, and of larger groups.

Times are CPU times: the call is single-threaded, so on an idle machine they equal wall-clock time.
"""

import gc
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from uuid import UUID

import numpy as np

from assignor import high_availability, read_problem
from assignor.placement import find_strategy
from assignor.placement.racks.optimise import optimize_active
from assignor.rebalance.threads import assign_threads
from benchmarks.assign.racks import group
from encoding import (
    Assignment,
    Subscription,
    TaskId,
    TaskOffsetSums,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

MEMBERS_SAMPLED = 500


def seconds(call, repeat=1):
    """CPU seconds of a call, the best of `repeat`."""
    best = float("inf")
    for _ in range(repeat):
        started = cpu()
        call()
        best = min(best, cpu() - started)
    return best


def cpu():
    """CPU seconds of this process and of its finished children."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def scale(problems, strategy, repeat=3):
    """Name -> (first ms, best ms) of each problem."""
    found = {}
    # Objects of this process, such as parsed problems, must not slow down garbage collection.
    gc.collect()
    gc.freeze()
    for data in problems:
        state = read_problem(data).state
        spent = [1000 * seconds(lambda state=state: strategy(state)) for _ in range(repeat)]
        found[data["name"]] = (spent[0], min(spent))
    gc.unfreeze()
    return found


def million():
    """Seconds of the rack optimum and of a whole assignment, and GiB: 1,000,000 x 50,000 x 6."""
    state = group(1_000_000, 50_000, 6)
    rack = seconds(lambda: optimize_active(state, state.owner))
    whole = seconds(lambda: high_availability(state))
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"rack_s": rack, "whole_s": whole, "gib": gib}


def in_its_own_process(name):
    """The figures of a function of this module, in a new interpreter."""
    module = "benchmarks.assign.speed"
    code = f"import json; from {module} import {name}; print(json.dumps({name}()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def steady():
    """Seconds to assign 100,000 tasks to 10,000 settled clients, and to code their metadata.

    The metadata of a sample of members is decoded and encoded, and extrapolated.
    """
    state = group(100_000, 10_000, 6)
    state = replace(state, config=replace(state.config, rack_aware_assignment_strategy="none"))
    assign = seconds(lambda: high_availability(state), 3)
    tasks = {}
    for task, client in enumerate(state.owner.tolist()):
        tasks.setdefault(client, []).append(state.tasks[task])
    sampled = list(tasks.values())[:MEMBERS_SAMPLED]
    blobs = [encode_subscription(_subscription(own)) for own in sampled]
    answers = [_answer(own) for own in sampled]
    decode = seconds(lambda: [decode_subscription(blob) for blob in blobs], 3)
    encode = seconds(lambda: [encode_assignment(answer) for answer in answers], 3)
    return {"assign_s": assign, "codec_s": (decode + encode) * len(tasks) / len(sampled)}


def _subscription(own):
    return Subscription(
        version=11,
        latest_supported_version=11,
        process_id=UUID(int=1),
        task_offset_sums=TaskOffsetSums.from_mapping(dict.fromkeys(own, 10**6)),
    )


def _answer(own):
    return Assignment(version=11, commonly_supported_version=11, active_tasks=tuple(sorted(own)))


def threads():
    """Seconds to assign 100,000 tasks to 100 threads, sticky."""
    tasks = [TaskId(n % 10, n // 10) for n in range(100_000)]
    names = [f"thread-{n:03}" for n in range(100)]
    rng = np.random.default_rng(7)
    owner = {t: names[n] for t, n in zip(tasks, rng.integers(100, size=len(tasks)), strict=True)}
    return seconds(lambda: assign_threads(tasks, threads=names, owner_by_task=owner), 3)


def import_seconds():
    """Seconds that the first name of `assignor` adds to a bare interpreter, best of three."""

    def run(code):
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 3)

    return run("from assignor import Topology") - run("pass")


def is_deterministic(problems, strategy):
    """Names of the problems whose answer depends on the order of the input."""
    rng, differ = np.random.default_rng(7), []
    for data in problems:
        shuffled = dict(data)
        for key in ("clients", "topics", "subtopologies", "end_offset_sums"):
            items = list(data.get(key, {}).items())
            rng.shuffle(items)
            shuffled[key] = {str(name): data[key][str(name)] for name, _ in items}
        first, second = (strategy(read_problem(d).state) for d in (data, shuffled))
        if (first.active != second.active).any() or first.standbys != second.standbys:
            differ.append(data["name"])
    return differ


def moved_by_a_join(strategy_name="sticky", tasks=1_000, clients=20):
    """Tasks that move when one client joins, divided by tasks / clients."""
    state = group(tasks, clients, 3)
    state = replace(state, config=replace(state.config, rack_aware_assignment_strategy="none"))
    grown = replace(
        state,
        clients=(*state.clients, "joined"),
        threads=np.append(state.threads, 1),
        racks=(*state.racks, "rack-0"),
        tags=(*state.tags, ()),
    )
    answer = find_strategy(strategy_name)(grown)
    return float((answer.active != state.owner).sum()) / (tasks / (clients + 1))
