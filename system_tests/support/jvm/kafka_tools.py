"""Clients of the process that runs Kafka's own tools."""

from dataclasses import dataclass

from system_tests.support.jvm.child import JvmChild


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """Output and exit status of one run of the tool."""

    status: int
    out: str
    err: str


class KafkaTool(JvmChild):
    """A tool of a release, in a separate process; use it as a context manager.

    Args:
        release: exact name.
    """

    java_class = ""

    def __init__(self, release: str) -> None:
        super().__init__("tools", release, what="tool")

    def run(self, *arguments: str) -> ToolRun:
        """Run it with the arguments of its shell script.

        Raises:
            EnvironmentFailureError: its process ended, because jars or Java are missing.
        """
        output = self.ask({"tool": self.java_class, "arguments": arguments})
        return ToolRun(status=output["status"], out=output["out"], err=output["err"])


class FeatureTool(KafkaTool):
    """`kafka-features.sh`."""

    java_class = "org.apache.kafka.tools.FeatureCommand"


class StreamsGroupsTool(KafkaTool):
    """`kafka-streams-groups.sh`, from 4.1 on."""

    java_class = "org.apache.kafka.tools.streams.StreamsGroupCommand"


class ResetTool(KafkaTool):
    """`kafka-streams-application-reset.sh`."""

    java_class = "org.apache.kafka.tools.StreamsResetter"
