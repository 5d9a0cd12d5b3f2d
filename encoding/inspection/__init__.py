"""Blobs for people and files: JSON fields of a value, and the meaning of every byte."""

from encoding.inspection.fields import (
    assignment_from_fields,
    assignment_to_fields,
    subscription_from_fields,
    subscription_to_fields,
)
from encoding.inspection.pieces import Piece, explain
from encoding.inspection.rows import is_integer

__all__ = [
    "Piece",
    "assignment_from_fields",
    "assignment_to_fields",
    "explain",
    "is_integer",
    "subscription_from_fields",
    "subscription_to_fields",
]
