"""An embedded Kafka broker on loopback: the real wire, real group semantics, records in memory."""

import logging

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

logging.getLogger(__name__).addHandler(logging.NullHandler())
