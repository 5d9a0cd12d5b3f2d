"""What the poll loops of all clients do after records, errors, revocations and a stop."""

from assignor.embedding.loops.client import Batch, LoopClient, TaskClient
from assignor.embedding.loops.engine import Engine, Steps, seek_back, settle
from assignor.embedding.loops.loop import (
    PollLoop,
    Reaction,
    first_offsets,
    log_late_commit,
    passed_over,
)
from assignor.embedding.loops.pace import BrokerWaits, PollPace
from assignor.embedding.loops.rules import (
    CLOSED,
    LOOP_RULES,
    LoopFacts,
    Step,
    Then,
    decide,
    lost_positions,
)
from assignor.embedding.loops.tasks import TaskEngine
from assignor.embedding.loops.watch import DeletedTopics, InputWatch, PolledBatch

__all__ = [
    "CLOSED",
    "LOOP_RULES",
    "Batch",
    "BrokerWaits",
    "DeletedTopics",
    "Engine",
    "InputWatch",
    "LoopClient",
    "LoopFacts",
    "PollLoop",
    "PollPace",
    "PolledBatch",
    "Reaction",
    "Step",
    "Steps",
    "TaskClient",
    "TaskEngine",
    "Then",
    "decide",
    "first_offsets",
    "log_late_commit",
    "lost_positions",
    "passed_over",
    "seek_back",
    "settle",
]
