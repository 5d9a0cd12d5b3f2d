"""Java virtual machines in Python processes: codecs, tools and members of real releases."""

from system_tests.support.jvm.broker_assignor import BrokerAssignor
from system_tests.support.jvm.codecs import RealCodec
from system_tests.support.jvm.kafka_tools import FeatureTool, ResetTool, StreamsGroupsTool, ToolRun

__all__ = [
    "BrokerAssignor",
    "FeatureTool",
    "RealCodec",
    "ResetTool",
    "StreamsGroupsTool",
    "ToolRun",
]
