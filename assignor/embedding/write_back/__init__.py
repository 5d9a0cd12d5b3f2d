"""Writing kept copies of stores back to changelogs that were deleted or have lost records.

The application is stopped. Of each task in a state directory that has notes (`KEPT`), the copies of
all stores are written to their changelogs, so that a restore has exactly their entries; then the
group's input offsets are set to those of the copies.
"""

from assignor.embedding.write_back.copies import KeptTask, open_kept
from assignor.embedding.write_back.plan import (
    InputMove,
    WriteBackPlan,
    plan_task,
    refuse_topics,
)
from assignor.embedding.write_back.writing import TaskWriter

__all__ = [
    "InputMove",
    "KeptTask",
    "TaskWriter",
    "WriteBackPlan",
    "open_kept",
    "plan_task",
    "refuse_topics",
]
