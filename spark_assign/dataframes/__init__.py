"""Placement from a notebook or a job of your own: DataFrames in, DataFrames out."""

from spark_assign.dataframes.flat_rows import from_rows, row_schema
from spark_assign.dataframes.placed_groups import group_schema, place, place_schema
from spark_assign.dataframes.placed_rows import to_rows
from spark_assign.tables import BadTable, ddl_of

__all__ = [
    "BadTable",
    "ddl_of",
    "from_rows",
    "group_schema",
    "place",
    "place_schema",
    "row_schema",
    "to_rows",
]
