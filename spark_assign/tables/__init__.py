"""Tables of the job: schemas, input, checks, conversion to group states, results, output."""

from spark_assign.tables.balance import SizeClass, balanced, size_classes
from spark_assign.tables.checks import Reject
from spark_assign.tables.convert import group_batch
from spark_assign.tables.errors import BadTable, SparkUnavailable, WrongRows
from spark_assign.tables.files import Files
from spark_assign.tables.inputs import Form, Groups, form_of, read_groups
from spark_assign.tables.kernel import (
    Batches,
    Kernel,
    Options,
    Read,
    placing,
    problem_reader,
    table_reader,
)
from spark_assign.tables.output import Stage, staged
from spark_assign.tables.rejects import (
    REJECTS,
    first_of,
    refused,
    rejects_of,
    repeated_names,
    repeated_rejects,
    stored_rejects,
    without,
    write_rejects,
)
from spark_assign.tables.results import ANSWER, COUNTS, WRITTEN, error_of
from spark_assign.tables.schemas import BY_NAME, CLIENT, GROUP, PLACEMENT, RESULT, TASK, fitted

__all__ = [
    "ANSWER",
    "BY_NAME",
    "CLIENT",
    "COUNTS",
    "GROUP",
    "PLACEMENT",
    "REJECTS",
    "RESULT",
    "TASK",
    "WRITTEN",
    "BadTable",
    "Batches",
    "Files",
    "Form",
    "Groups",
    "Kernel",
    "Options",
    "Read",
    "Reject",
    "SizeClass",
    "SparkUnavailable",
    "Stage",
    "WrongRows",
    "balanced",
    "error_of",
    "first_of",
    "fitted",
    "form_of",
    "group_batch",
    "placing",
    "problem_reader",
    "read_groups",
    "refused",
    "rejects_of",
    "repeated_names",
    "repeated_rejects",
    "size_classes",
    "staged",
    "stored_rejects",
    "table_reader",
    "without",
    "write_rejects",
]
