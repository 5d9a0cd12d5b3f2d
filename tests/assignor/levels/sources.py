"""Level sources with given levels, and members that poll them."""

import threading

from probing.features import ASSIGNMENT_PROTOCOL, FinalizedLevels
from tests.assignor.adapters.members import cluster, joined, made, on_the_wire


def at(level, epoch):
    return FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level}, epoch=epoch)


class Source:
    """A level source with given levels, one per poll, the last one repeated; counts polls."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.looks = threading.Semaphore(0)

    def __call__(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.looks.release()
        if isinstance(answer, Exception):
            raise answer
        return answer


def watching(source, **options):
    """A member of kafka-python that polls a source continuously."""
    return made(level_source=source, level_poll_s=0.01, **options)


def looked(source):
    """Wait until a whole poll has been processed: the one before the second next."""
    for _ in range(2):
        assert source.looks.acquire(timeout=120)


def settled(*assignors, leader=0):
    """Run one rebalance of adapters through the client's bytes."""
    group = [joined(assignor, f"m{n}") for n, assignor in enumerate(assignors)]
    answers = assignors[leader].assign(cluster(lines=4), group)
    for n, assignor in enumerate(assignors):
        assignor.on_assignment(on_the_wire(answers[f"m{n}"]), 1)


class Timer:
    """A timer that records its schedules."""

    def __init__(self):
        self.delays = []

    def schedule(self, delay_ms):
        self.delays.append(delay_ms)

    def clear(self):
        pass

    def close(self):
        pass
