"""Assignment of whole fleets with Spark.

`place` assigns the tasks of every group of a DataFrame; `from_rows` and `to_rows` read and write
flat tables. The program `spark-assign` does the same with files. The names below import Spark when
they are first used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_assign.dataframes import (
        BadTable,
        ddl_of,
        from_rows,
        group_schema,
        place,
        place_schema,
        row_schema,
        to_rows,
    )

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


def __getattr__(name: str) -> object:
    """Import a public name from `spark_assign.dataframes`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("spark_assign.dataframes"), name)
