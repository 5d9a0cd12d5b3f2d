"""Distribution of groups over workers, and the function that each worker runs."""

from spark_assign.workers.balance import SizeClass, balanced, size_classes
from spark_assign.workers.kernel import (
    Batches,
    Kernel,
    Options,
    Read,
    placing,
    problem_reader,
    table_reader,
)

__all__ = [
    "Batches",
    "Kernel",
    "Options",
    "Read",
    "SizeClass",
    "balanced",
    "placing",
    "problem_reader",
    "size_classes",
    "table_reader",
]
