"""What else changes between releases: Java, brokers, defaults, removed settings, store formats.

A row for each change, with its source. Defaults and removed settings were compared with the
`ConfigDef` of the published jars of 2.3.1, 2.8.2, 3.1.2, 3.9.1 and 4.3.1. "upgrade notes" is the
page "Upgrading" of Kafka's documentation, "Streams guide" the page "Upgrade Guide and API Changes"
of Kafka Streams, "guide to the DSL" its page "Streams DSL".
"""

from system_tests.plan.changes.model import (
    PathChange,
    ReleaseChange,
    Subject,
    When,
    changes_between,
)
from system_tests.plan.changes.rows import CHANGES, NOT_CHECKED
from system_tests.plan.changes.streams import STREAMS_CHANGES, STREAMS_NOT_CHECKED

__all__ = [
    "CHANGES",
    "NOT_CHECKED",
    "STREAMS_CHANGES",
    "STREAMS_NOT_CHECKED",
    "PathChange",
    "ReleaseChange",
    "Subject",
    "When",
    "changes_between",
]
