"""The assignment of a JVM leader: a port of Kafka Streams' HighAvailabilityTaskAssignor.

Import `kafka_high_availability` from here; the modules of this package are its steps.
"""

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.racks import KafkaRacks
from assignor.placement.jvm.strategy import kafka_high_availability

__all__ = [
    "KafkaGroup",
    "KafkaRacks",
    "kafka_high_availability",
]
