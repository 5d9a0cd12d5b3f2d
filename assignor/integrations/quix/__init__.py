"""Quix Streams applications, unchanged, on this package's assignor.

Quix makes its consumer in one place, which `streams_assignor` fills. Private parts of Quix are used
in this package only, and only of the releases for which it was written.
"""

from assignor.integrations.quix.application import QuixKeywords, streams_assignor
from assignor.integrations.quix.member import QuixSession, installed

__all__ = [
    "QuixKeywords",
    "QuixSession",
    "installed",
    "streams_assignor",
]
