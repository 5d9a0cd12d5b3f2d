"""All changes together, and what no plan checks."""

from typing import Final

from system_tests.plan.changes.brokers import EXACTLY_ONCE, JAVA_AND_BROKERS
from system_tests.plan.changes.settings import BEHAVIOUR, DEFAULTS, REMOVED
from system_tests.plan.changes.stores import DEFECTS, STORES

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
