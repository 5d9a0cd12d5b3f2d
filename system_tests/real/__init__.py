"""Real Apache Kafka brokers of any release, from published jars."""

from system_tests.real.broker import RealBroker, running_real_broker, send_signal
from system_tests.real.jars import (
    PINS,
    broker_jars,
    broker_release,
    sha256,
    streams_jars,
    tools_jars,
)
from system_tests.real.java import Java, find_java

__all__ = [
    "PINS",
    "Java",
    "RealBroker",
    "broker_jars",
    "broker_release",
    "find_java",
    "running_real_broker",
    "send_signal",
    "sha256",
    "streams_jars",
    "tools_jars",
]
