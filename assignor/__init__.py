"""Kafka Streams' rebalance for Python consumer groups: topology, strategies, leader and member.

This package exports everything that an application imports, except the adapters for Kafka clients:
`assignor.adapters.kafka_python`, `assignor.adapters.aiokafka`, `assignor.adapters.confluent`. It
imports none of the clients. Only `adapters`, `cli`, `embedding`, `levels`, `stores` and `observe`
do I/O, and `workers` starts processes.

Its names are loaded when the first of them is used, so that a program can handle Ctrl-C before it
loads anything that takes time.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assignor.problems import read_problem as read_problem
    from assignor.public import *  # noqa: F403 one list of names, in that module
    from assignor.public import __all__ as __all__

# Of modules that no member needs.
_LATE = {"read_problem": "assignor.problems"}

if not TYPE_CHECKING:  # otherwise a type checker accepts every name

    def __getattr__(name: str) -> object:
        """Load a public name, and with the first one all others."""
        if name in _LATE:
            return getattr(importlib.import_module(_LATE[name]), name)
        public = importlib.import_module("assignor.public")
        if name == "__all__":
            return [*public.__all__, *_LATE]
        if name not in public.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(public, name)
        return found

    def __dir__() -> list[str]:
        """Return all names, also those that are not loaded."""
        return sorted({*globals(), *__getattr__("__all__")})
