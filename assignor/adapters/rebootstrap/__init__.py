"""Rebootstrap of Kafka clients (KIP-899, KIP-1102): what the supervisors share.

`assignor.adapters.rebootstrap.kafka_python` and `.aiokafka` are front doors of their own, since
each imports its client.
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
