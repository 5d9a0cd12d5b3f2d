"""Kafka Streams' rebalance for Python consumer groups: topology, strategies, leader and member.

`__all__` has what an application needs first. What else it may need is in the sub-packages, each
with an `__all__` of its own, and in one adapter for each Kafka client:
`assignor.adapters.kafka_python`, `assignor.adapters.aiokafka`, `assignor.adapters.confluent`. This
package imports none of the clients. Only `adapters`, `cli`, `embedding`, `levels`, `stores` and
`observe` do I/O, and `workers` starts processes.

Its names are loaded when the first of them is used, so that a program can handle Ctrl-C before it
loads anything that takes time.
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assignor.problems import read_problem as read_problem
    from assignor.public import *  # noqa: F403 one list of names, in that module

__all__ = [
    "BYTES",
    "JSON",
    "TEXT",
    "AssignmentConfig",
    "BadRecord",
    "BadRecordAction",
    "BadRecordStage",
    "ClusterUnavailable",
    "ConfigError",
    "DeadLetter",
    "DictStore",
    "InternalTopicSettings",
    "KeyHosts",
    "MemberRefused",
    "MemberStopped",
    "RebalanceError",
    "RebalanceHook",
    "RunningTasks",
    "SqliteStore",
    "StoreError",
    "TaskId",
    "TaskState",
    "TaskStores",
    "TasksListener",
    "TopicPartition",
    "Topology",
    "TopologyError",
    "UnreadableRecord",
]

MOVED: Final = {
    name: place
    for place, names in {
        "assignor.config": "config_from_mapping",
        "assignor.embedding": "Partitioner ProcessDirectory StateDirectoryLocked partition_for_key",
        "assignor.errors": (
            "CopartitionMismatch LeaderRefused MissingSourceTopic TaskAssignmentError"
        ),
        "assignor.levels": "LevelSource",
        "assignor.observe": "LoggingHook Observation Observer Outcome RebalanceEnd RebalanceStart",
        "assignor.placement": (
            "AssignmentError ClientTasks InvalidAssignment LAG_UNKNOWN NOBODY Strategy"
            " assignment_from by_client by_task client_inputs fallback_prior find_strategy"
            " nearest_caught_up_client"
        ),
        "assignor.placement.racks": (
            "optimize_rack_aware_active_tasks optimize_rack_aware_standby_tasks"
        ),
        "assignor.rebalance": "GroupAnswer PartitionsByTask Routing TasksHeld",
        "assignor.topology": "RepartitionTopic Subtopology TaskPlan plan_tasks",
        "encoding": "HostInfo",
    }.items()
    for name in names.split()
}
"""Names that programs import from elsewhere from 0.3 on, and from where."""

# Of modules that no member needs.
_LATE = {"read_problem": "assignor.problems"}

if not TYPE_CHECKING:  # otherwise a type checker accepts every name

    def __getattr__(name: str) -> object:
        """Load a name, and with the first one all others.

        A name of `MOVED` raises a DeprecationWarning.
        """
        if name in _LATE:
            return getattr(importlib.import_module(_LATE[name]), name)
        found = None
        if not name.startswith("_"):
            found = getattr(importlib.import_module("assignor.public"), name, None)
        if found is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in MOVED:
            where = f"from {MOVED[name]} import {name}"
            text = f"write `{where}`: the package assignor itself has it until 0.3"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        else:
            globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """Return all names, also those that are not loaded."""
        return sorted({*globals(), *__all__, *_LATE})
