"""What else changes between releases: Java, brokers, defaults, removed settings, store formats.

A row for each change, with its source. Defaults and removed settings were compared with the
`ConfigDef` of the published jars of 2.3.1, 2.8.2, 3.1.2, 3.9.1 and 4.3.1. "upgrade notes" is the
page "Upgrading" of Kafka's documentation, "Streams guide" the page "Upgrade Guide and API Changes"
of Kafka Streams, "guide to the DSL" its page "Streams DSL".
"""

from typing import Final

from system_tests.plan.changes.brokers import EXACTLY_ONCE, JAVA_AND_BROKERS
from system_tests.plan.changes.model import (
    PathChange,
    ReleaseChange,
    Subject,
    When,
    changes_between,
)
from system_tests.plan.changes.settings import BEHAVIOUR, DEFAULTS, REMOVED
from system_tests.plan.changes.stores import DEFECTS, STORES

__all__ = [
    "CHANGES",
    "NOT_CHECKED",
    "PathChange",
    "ReleaseChange",
    "Subject",
    "When",
    "changes_between",
]

CHANGES: Final = (
    *JAVA_AND_BROKERS,
    *EXACTLY_ONCE,
    *REMOVED,
    *DEFAULTS,
    *BEHAVIOUR,
    *STORES,
    *DEFECTS,
)
"""Every row for the way from one release to another."""

NOT_CHECKED: Final = (
    "the application's code: whether it uses an API or a setting that is gone",
    "classes of your own: serdes, exception handlers, rocksdb.config.setter, task assignors",
    "the topology: the plan assumes that it stays the same (rolling-bounce plan --topology)",
    "the brokers: their versions, ACLs, quotas and inter.broker.protocol.version",
    "the hosts: their Java version, memory, and space on disk for further copies of state",
    "dependencies: frameworks around Kafka Streams, Scala, logging, security providers",
    "dashboards and alarms on metrics and log lines",
    "changes that concern no group: Connect, MirrorMaker, tools, tests",
)
"""What no plan says anything about."""
