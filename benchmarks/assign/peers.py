"""Assignments of other Python clients, as strategies of this project.

`kafka_python_sticky` calls kafka-python's own assignor: one member per thread, one partition per
task. `faust_like` is a bound: Faust's documented rules with complete knowledge: keep up to an even
share, promote a standby, place the rest in turn; standbys likewise.
"""

import logging
from types import SimpleNamespace

import numpy as np
from kafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyAssignmentExecutor,
    StickyAssignorMemberMetadataV1,
)
from kafka.structs import TopicPartition

from assignor import TaskAssignment
from assignor.placement import NOBODY

# It warns of partitions without consumers, which are irrelevant here.
logging.getLogger("kafka").setLevel(logging.ERROR)


def kafka_python_sticky(state):
    """KIP-54 as kafka-python has it: partitions only, no standbys, no lags."""
    topics = [f"s{sub}" for sub in sorted(set(state.subtopology.tolist()))]
    name = [TopicPartition(f"s{t.subtopology}", t.partition) for t in state.tasks]
    held = [[] for _ in state.clients]
    for task, client in enumerate(state.owner.tolist()):
        if client != NOBODY:
            held[client].append(name[task])
    members = {}
    for client, threads in enumerate(state.capacity().tolist()):
        for thread in range(threads):
            members[f"{client:06}-{thread}"] = StickyAssignorMemberMetadataV1(
                partitions=held[client][thread::threads], generation=1, subscription=topics
            )
    partitions = {topic: set() for topic in topics}
    for partition_name in name:
        partitions[partition_name.topic].add(partition_name.partition)
    cluster = SimpleNamespace(partitions_for_topic=partitions.get, topics=partitions.keys)
    executor = StickyAssignmentExecutor(cluster, members)
    executor.perform_initial_assignment()
    executor.balance()
    number = {partition_name: task for task, partition_name in enumerate(name)}
    active = np.full(len(name), NOBODY, dtype=np.int64)
    for member in members:
        for topic, given in executor.get_final_assignment(member):
            for partition in given:
                active[number[TopicPartition(topic, partition)]] = int(member.partition("-")[0])
    return TaskAssignment(active=active)


def faust_like(state):
    """Keep up to an even share, promote standbys, place the rest in turn."""
    capacity = state.capacity().tolist()
    share = -(-len(state.tasks) // sum(capacity))
    free = [share * threads for threads in capacity]
    active = [NOBODY] * len(state.tasks)

    def take(task, client):
        if active[task] == NOBODY and client != NOBODY and free[client] > 0:
            active[task] = client
            free[client] -= 1

    for task, owner in enumerate(state.owner.tolist()):
        take(task, owner)
    for task in range(len(active)):
        for client, _ in state.copies(task) if active[task] == NOBODY else ():
            take(task, client)
    turn = 0
    for task in range(len(active)):
        while active[task] == NOBODY:
            take(task, turn % len(free))
            turn += 1
    pairs = _standbys(state, active, capacity)
    return TaskAssignment(active=np.array(active, dtype=np.int64), standbys=tuple(sorted(pairs)))


def _standbys(state, active, capacity):
    usable = sum(threads > 0 for threads in capacity)
    wanted = min(state.config.num_standby_replicas, usable - 1)
    share = -(-wanted * int(state.stateful.sum()) // sum(capacity))
    free, pairs, turn = [share * threads for threads in capacity], set(), 0
    stateful = np.flatnonzero(state.stateful).tolist()
    for task in stateful if wanted > 0 else ():
        kept = 0
        for client, _ in state.copies(task):
            if kept < wanted and client != active[task] and free[client] > 0:
                pairs.add((task, client))
                free[client] -= 1
                kept += 1
    count = dict.fromkeys(stateful, 0)
    for task, _ in pairs:
        count[task] += 1
    for task in stateful if wanted > 0 else ():
        for step in range(2 * len(free)):
            client = (turn + step) % len(free)
            is_full = free[client] <= 0 and step < len(free)
            taken = client == active[task] or (task, client) in pairs or capacity[client] == 0
            if count[task] == wanted:
                break
            if not is_full and not taken:
                pairs.add((task, client))
                free[client] -= 1
                count[task] += 1
                turn = client + 1
    return pairs
