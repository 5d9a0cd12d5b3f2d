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
from system_tests.real.machine import (
    implement,
    java_bytes,
    java_causes,
    java_exception,
    start_jvm,
)
from system_tests.real.serving import serve_real_broker

__all__ = [
    "PINS",
    "Java",
    "RealBroker",
    "broker_jars",
    "broker_release",
    "find_java",
    "implement",
    "java_bytes",
    "java_causes",
    "java_exception",
    "running_real_broker",
    "send_signal",
    "serve_real_broker",
    "sha256",
    "start_jvm",
    "streams_jars",
    "tools_jars",
]
