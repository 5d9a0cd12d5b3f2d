"""Distribution of groups over workers, and the function that each worker runs."""

from spark_assign.workers.balance import (
    SizeClass,
    balanced,
    set_batch_rows,
    set_partition_bytes,
    set_whole_files,
    size_classes,
    spread_rows,
)
from spark_assign.workers.kernel import (
    Batches,
    Kernel,
    Options,
    Read,
    ReadSome,
    placing,
    table_reader,
)
from spark_assign.workers.lines import Notes, noting_reader, problem_reader
from spark_assign.workers.startup import start_workers

__all__ = [
    "Batches",
    "Kernel",
    "Notes",
    "Options",
    "Read",
    "ReadSome",
    "SizeClass",
    "balanced",
    "noting_reader",
    "placing",
    "problem_reader",
    "set_batch_rows",
    "set_partition_bytes",
    "set_whole_files",
    "size_classes",
    "spread_rows",
    "start_workers",
    "table_reader",
]
