"""Rebootstrap of Kafka clients (KIP-899, KIP-1102): what the supervisors share.

Import `supervise` from `assignor.adapters.rebootstrap.kafka_python` or `.aiokafka`; each of them
imports its Kafka client.
"""

from assignor.adapters.rebootstrap.supervisor import (
    Listener,
    Rebootstrapped,
    RebootstrapRequiredError,
)

__all__ = [
    "Listener",
    "RebootstrapRequiredError",
    "Rebootstrapped",
]
