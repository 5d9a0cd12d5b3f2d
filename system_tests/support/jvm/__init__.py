"""Java virtual machines in Python processes: codecs, tools and members of real releases."""

from system_tests.support.jvm.broker_assignor import BrokerAssignor
from system_tests.support.jvm.codecs import RealCodec
from system_tests.support.jvm.feature_tool import FeatureTool, ToolRun

__all__ = [
    "BrokerAssignor",
    "FeatureTool",
    "RealCodec",
    "ToolRun",
]
