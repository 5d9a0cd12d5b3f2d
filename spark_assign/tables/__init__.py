"""Tables of the job: schemas, input, checks, conversion to group states, results, output."""

from spark_assign.tables.checks import Reject
from spark_assign.tables.convert import group_batch
from spark_assign.tables.errors import BadTable, SparkUnavailable, WrongRows
from spark_assign.tables.files import Files
from spark_assign.tables.guard import guarded
from spark_assign.tables.inputs import Form, Groups, form_of, read_groups
from spark_assign.tables.output import Stage, staged
from spark_assign.tables.places import PLACE
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
from spark_assign.tables.results import (
    ANSWER,
    COUNTS,
    WRITTEN,
    Answer,
    batch_of,
    error_of,
    text_of,
)
from spark_assign.tables.schemas import BY_NAME, CLIENT, GROUP, PLACEMENT, RESULT, TASK, fitted
from spark_assign.tables.states import states_of

__all__ = [
    "ANSWER",
    "BY_NAME",
    "CLIENT",
    "COUNTS",
    "GROUP",
    "PLACE",
    "PLACEMENT",
    "REJECTS",
    "RESULT",
    "TASK",
    "WRITTEN",
    "Answer",
    "BadTable",
    "Files",
    "Form",
    "Groups",
    "Reject",
    "SparkUnavailable",
    "Stage",
    "WrongRows",
    "batch_of",
    "error_of",
    "first_of",
    "fitted",
    "form_of",
    "group_batch",
    "guarded",
    "read_groups",
    "refused",
    "rejects_of",
    "repeated_names",
    "repeated_rejects",
    "staged",
    "states_of",
    "stored_rejects",
    "text_of",
    "without",
    "write_rejects",
]
