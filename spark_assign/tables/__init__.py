"""Tables of the job: schemas, input, checks, conversion to group states, results, output."""

from spark_assign.tables.convert import group_batch
from spark_assign.tables.errors import BadTable, SparkUnavailable, WrongRows
from spark_assign.tables.files import Files
from spark_assign.tables.guard import guarded
from spark_assign.tables.inputs import Form, Groups, form_of, read_groups
from spark_assign.tables.output import Stage, staged
from spark_assign.tables.places import POSITION
from spark_assign.tables.reject_rows import (
    REJECTS,
    first_sentences,
    refused,
    rejects_with_places,
    write_rejects,
)
from spark_assign.tables.rejects import REJECT, Position, Reject, printable_name
from spark_assign.tables.repeats import repeated_names, repeated_rejects, without
from spark_assign.tables.results import (
    ANSWER,
    COUNTS,
    WRITTEN,
    Answer,
    batch_of,
)
from spark_assign.tables.schemas import BY_NAME, CLIENT, GROUP, PLACEMENT, RESULT, TASK, fitted
from spark_assign.tables.states import states_of

__all__ = [
    "ANSWER",
    "BY_NAME",
    "CLIENT",
    "COUNTS",
    "GROUP",
    "PLACEMENT",
    "POSITION",
    "REJECT",
    "REJECTS",
    "RESULT",
    "TASK",
    "WRITTEN",
    "Answer",
    "BadTable",
    "Files",
    "Form",
    "Groups",
    "Position",
    "Reject",
    "SparkUnavailable",
    "Stage",
    "WrongRows",
    "batch_of",
    "first_sentences",
    "fitted",
    "form_of",
    "group_batch",
    "guarded",
    "printable_name",
    "read_groups",
    "refused",
    "rejects_with_places",
    "repeated_names",
    "repeated_rejects",
    "staged",
    "states_of",
    "without",
    "write_rejects",
]
