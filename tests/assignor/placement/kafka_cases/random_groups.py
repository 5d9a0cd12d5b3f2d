"""Random groups like those of Kafka's tests, drawn from seeds instead of the clock."""

import random
from dataclasses import dataclass

from assignor.placement.state import LAG_RUNNING, ClientInput, group_state
from encoding import TaskId
from tests.assignor.placement.kafka_cases.fixtures import config_of, process_id


def seeded(*parts):
    """A separate random generator for each case."""
    return random.Random("/".join(map(str, parts)))  # noqa: S311 a test, no secret


def subsets(rng, tasks, count):
    """Tasks cut into `count` parts of random sizes; the last one takes the rest."""
    left = rng.sample(tasks, len(tasks))
    found = []
    for number in range(count):
        size = len(left) if number == count - 1 else rng.randint(1, len(left)) if left else 0
        found.append(left[:size])
        left = left[size:]
    return found


def shuffled_racks(rng, nodes):
    """One rack a broker, brokers in random order."""
    racks = [f"rack{number}" for number in range(nodes)]
    return rng.sample(racks, nodes)


def replicas(racks, topic, partition):
    """Racks of the two replicas of a partition."""
    place = topic * partition
    return frozenset({racks[place % len(racks)], racks[(place + 1) % len(racks)]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size of a random group.

    Attributes:
        nodes, topics, partitions, clients: how many; a task reads one partition of two topics.
        most_threads: threads of a client are drawn up to this.
        stateful: True or False for all tasks, None for a random part of them.
        is_fresh: whether no client ran or holds anything, with `threads` threads a client.
        threads: of each client of a fresh group.
    """

    nodes: int = 50
    topics: int = 60
    partitions: int = 3
    clients: int = 50
    most_threads: int = 3
    stateful: bool | None = None
    is_fresh: bool = False
    threads: int = 1


BIG = Shape()


def random_group(rng, settings, shape=BIG, clients=None):
    """A group in random racks whose clients are all caught up on every stateful task.

    `clients` are used instead of drawn ones; they get the drawn racks.
    """
    tasks = [TaskId(s, p) for s in range(shape.topics) for p in range(shape.partitions)]
    sources = shuffled_racks(rng, shape.nodes)
    racks = shuffled_racks(rng, shape.nodes)
    changelogs = shuffled_racks(rng, shape.nodes)
    stateful = {None: None, True: tasks, False: []}[shape.stateful]
    if stateful is None:
        stateful = sorted(subsets(rng, tasks, 2)[0])
    ran = subsets(rng, tasks, shape.clients)
    drawn = [
        {"threads": shape.threads}
        if shape.is_fresh
        else {
            "threads": rng.randint(1, shape.most_threads),
            "active_tasks": frozenset(ran[number]),
            "lags": dict.fromkeys(stateful, 0),
        }
        for number in range(shape.clients)
    ]

    def of_both_topics(table):
        return {
            task: tuple(
                replicas(table, topic % shape.topics, task.partition)
                for topic in (task.subtopology, task.subtopology + 1)
            )
            for task in tasks
        }

    return group_state(
        tasks=tasks,
        stateful_tasks=stateful,
        clients=[
            ClientInput(process_id=process_id(n), rack=racks[n % shape.nodes], **given)
            for n, given in enumerate(clients or drawn, start=1)
        ],
        config=config_of(settings),
        partition_racks=of_both_topics(sources),
        changelog_racks={
            task: racks_of
            for task, racks_of in of_both_topics(changelogs).items()
            if task in stateful
        },
    )


def running(*tasks):
    """Fields of a client that ran these tasks on one thread."""
    return {"active_tasks": frozenset(tasks), "lags": dict.fromkeys(tasks, LAG_RUNNING)}
