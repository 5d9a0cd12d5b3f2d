"""Real Apache Kafka and real Kafka Streams, of any release, beside members of ours.

Brokers and JVM members are child processes made from published jars (`jars.py`); nothing here is
compiled. Needs the extra `real`, and Java 17 or newer, which the extra brings where it is missing.
"""

from system_tests.real.broker import RealBroker, running_real_broker
from system_tests.real.jars import broker_jars, broker_release, streams_jars
from system_tests.real.java import Java, find_java

__all__ = [
    "Java",
    "RealBroker",
    "broker_jars",
    "broker_release",
    "find_java",
    "running_real_broker",
    "streams_jars",
]
