"""An embedded Kafka broker on loopback: Kafka's wire protocol and groups, records in memory.

It uses kafka-python's protocol classes (extra `kafka`), which are imported on first use.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from system_tests.broker.config import TEST_COORDINATOR, BrokerConfig
    from system_tests.broker.embedded import EmbeddedBroker
    from system_tests.broker.faults import Fault, RecordedRequest
    from system_tests.broker.running import RunningBroker, running_broker

__all__ = [
    "TEST_COORDINATOR",
    "BrokerConfig",
    "EmbeddedBroker",
    "Fault",
    "RecordedRequest",
    "RunningBroker",
    "running_broker",
]

_LATER = {
    "TEST_COORDINATOR": "config",
    "BrokerConfig": "config",
    "EmbeddedBroker": "embedded",
    "Fault": "faults",
    "RecordedRequest": "faults",
    "RunningBroker": "running",
    "running_broker": "running",
}

if not TYPE_CHECKING:  # otherwise a type checker accepts every name

    def __getattr__(name: str) -> object:
        """Import a public name, and kafka-python with it, on first use."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return found


logging.getLogger(__name__).addHandler(logging.NullHandler())
