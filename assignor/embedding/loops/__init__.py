"""What the poll loops of all clients do after records, errors, revocations and a stop."""

from assignor.embedding.loops.loop import (
    DeletedTopics,
    PollLoop,
    Reaction,
    first_offsets,
    log_late_commit,
    passed_over,
)
from assignor.embedding.loops.pace import PollPace
from assignor.embedding.loops.rules import (
    CLOSED,
    LOOP_RULES,
    LoopFacts,
    Step,
    Then,
    decide,
    lost_positions,
)
from assignor.embedding.loops.watch import InputWatch, PolledBatch

__all__ = [
    "CLOSED",
    "LOOP_RULES",
    "DeletedTopics",
    "InputWatch",
    "LoopFacts",
    "PollLoop",
    "PollPace",
    "PolledBatch",
    "Reaction",
    "Step",
    "Then",
    "decide",
    "first_offsets",
    "log_late_commit",
    "lost_positions",
    "passed_over",
]
