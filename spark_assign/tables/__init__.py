"""Tables of the job: schemas, input, checks, conversion to group states, results, output."""

from spark_assign.tables.convert import group_batch
from spark_assign.tables.errors import BadTable, OutOfMemory, SparkUnavailable, WrongRows
from spark_assign.tables.files import Files, literal_path
from spark_assign.tables.guard import guarded
from spark_assign.tables.inputs import (
    Form,
    Groups,
    check_kept,
    form_of,
    read_groups,
    read_table,
)
from spark_assign.tables.output import Stage, staged
from spark_assign.tables.places import POSITION, SkippedLine, file_of, path_column, with_places
from spark_assign.tables.reject_rows import (
    REJECTS,
    first_sentences,
    refused,
    rejects_with_places,
    write_rejects,
)
from spark_assign.tables.rejects import POSITION_TYPE, REJECT, Position, Reject, printable_name
from spark_assign.tables.repeats import repeated_names, repeated_rejects, without
from spark_assign.tables.results import (
    ANSWER,
    COUNTS,
    Answer,
    batch_of,
    total,
)
from spark_assign.tables.schemas import (
    BY_NAME,
    CLIENT,
    GROUP,
    MEASURES,
    PLACEMENT,
    RESULT,
    TASK,
    ddl_of,
    fitted,
    name_key,
    quoted,
)
from spark_assign.tables.states import states_of
from spark_assign.tables.steps import current_step, step

__all__ = [
    "ANSWER",
    "BY_NAME",
    "CLIENT",
    "COUNTS",
    "GROUP",
    "MEASURES",
    "PLACEMENT",
    "POSITION",
    "POSITION_TYPE",
    "REJECT",
    "REJECTS",
    "RESULT",
    "TASK",
    "Answer",
    "BadTable",
    "Files",
    "Form",
    "Groups",
    "OutOfMemory",
    "Position",
    "Reject",
    "SkippedLine",
    "SparkUnavailable",
    "Stage",
    "WrongRows",
    "batch_of",
    "check_kept",
    "current_step",
    "ddl_of",
    "file_of",
    "first_sentences",
    "fitted",
    "form_of",
    "group_batch",
    "guarded",
    "literal_path",
    "name_key",
    "path_column",
    "printable_name",
    "quoted",
    "read_groups",
    "read_table",
    "refused",
    "rejects_with_places",
    "repeated_names",
    "repeated_rejects",
    "staged",
    "states_of",
    "step",
    "total",
    "with_places",
    "without",
    "write_rejects",
]
