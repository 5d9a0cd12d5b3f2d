"""The forms in which an answer can carry the routing view."""

from enum import StrEnum


class ViewForm(StrEnum):
    """Forms in which a view is sent, the largest first."""

    FULL = "full"
    DELTA = "delta"
    REFERENCE = "reference"
    NONE = "none"
