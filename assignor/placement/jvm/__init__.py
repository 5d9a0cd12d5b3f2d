"""What a JVM leader will do: Kafka Streams' HighAvailabilityTaskAssignor, decision by decision.

Import `kafka_high_availability` from here; the modules below it are the steps of that algorithm.
"""

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.racks import KafkaRacks
from assignor.placement.jvm.strategy import kafka_high_availability
from assignor.placement.jvm.targets import assign_stateful

__all__ = [
    "KafkaGroup",
    "KafkaRacks",
    "assign_stateful",
    "kafka_high_availability",
]
