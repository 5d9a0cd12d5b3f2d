"""What a JVM leader will do: Kafka Streams' HighAvailabilityTaskAssignor, decision by decision.

Import `kafka_high_availability` from here; the modules below it are the steps of that algorithm.
"""

from assignor.kafka.high_availability import kafka_high_availability

__all__ = ["kafka_high_availability"]
