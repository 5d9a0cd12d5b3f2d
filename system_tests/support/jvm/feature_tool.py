"""Kafka's own feature tool, run from here."""

from dataclasses import dataclass

from system_tests.support.jvm.child import JvmChild


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """What one run of the tool said, and its exit status."""

    status: int
    out: str
    err: str


class FeatureTool(JvmChild):
    """The tool of a release in a process of its own; use it as a context manager.

    Args:
        release: exact name.
    """

    def __init__(self, release: str) -> None:
        super().__init__("features", release, what="tool")

    def run(self, *arguments: str) -> ToolRun:
        """Run it with the arguments of `kafka-features.sh`.

        Raises:
            EnvironmentFailureError: its process ended, for want of jars or of a Java.
        """
        output = self.ask({"arguments": arguments})
        return ToolRun(status=output["status"], out=output["out"], err=output["err"])
