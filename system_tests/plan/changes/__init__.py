"""What else changes between releases: Java, brokers, defaults, removed settings, store formats.

A row for each change, with its source, in `changes.toml`; those of the streams protocol in
`streams.toml`.
"""

from system_tests.plan.changes.brokers import Brokers, brokers_of
from system_tests.plan.changes.model import (
    PathChange,
    ReleaseChange,
    Subject,
    When,
    Work,
    changes_between,
    changes_when,
)
from system_tests.plan.changes.rows import (
    ANNOUNCED,
    CHANGES,
    NEW,
    NOT_CHECKED,
    STREAMS_BROKERS,
    STREAMS_CHANGES,
    STREAMS_NOT_CHECKED,
    Announced,
    find_target,
)
from system_tests.plan.changes.sources import with_sources
from system_tests.plan.changes.streams import streams_changes

__all__ = [
    "ANNOUNCED",
    "CHANGES",
    "NEW",
    "NOT_CHECKED",
    "STREAMS_BROKERS",
    "STREAMS_CHANGES",
    "STREAMS_NOT_CHECKED",
    "Announced",
    "Brokers",
    "PathChange",
    "ReleaseChange",
    "Subject",
    "When",
    "Work",
    "brokers_of",
    "changes_between",
    "changes_when",
    "find_target",
    "streams_changes",
    "with_sources",
]
