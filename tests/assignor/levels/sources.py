"""Level sources with given levels, and members that poll them."""

from assignor.adapters.membership import RejoinTimer
from probing.features import ASSIGNMENT_PROTOCOL, FinalizedLevels
from tests.assignor.adapters.members import cluster, joined, on_the_wire


def at(level, epoch):
    return FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level}, epoch=epoch)


class Source:
    """A level source with given levels, one per poll, the last one repeated; counts polls."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.polls = 0

    def __call__(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.polls += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def look(assignor):
    """Poll the level source of a member once, as its thread does."""
    assignor._driver.levels._look()


def settled(*assignors, leader=0):
    """Run one rebalance of adapters through the client's bytes."""
    group = [joined(assignor, f"m{n}") for n, assignor in enumerate(assignors)]
    answers = assignors[leader].assign(cluster(lines=4), group)
    for n, assignor in enumerate(assignors):
        assignor.on_assignment(on_the_wire(answers[f"m{n}"]), 1)


class Timer(RejoinTimer):
    """A timer that records its schedules."""

    def __init__(self):
        super().__init__(None)
        self.delays = []

    def schedule(self, delay_ms):
        self.delays.append(delay_ms)
