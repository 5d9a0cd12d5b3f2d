"""A client of the process that runs Kafka's feature tool."""

from dataclasses import dataclass

from system_tests.support.jvm.child import JvmChild


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """Output and exit status of one run of the tool."""

    status: int
    out: str
    err: str


class FeatureTool(JvmChild):
    """The tool of a release, in a separate process; use it as a context manager.

    Args:
        release: exact name.
    """

    def __init__(self, release: str) -> None:
        super().__init__("features", release, what="tool")

    def run(self, *arguments: str) -> ToolRun:
        """Run it with the arguments of `kafka-features.sh`.

        Raises:
            EnvironmentFailureError: its process ended, because jars or Java are missing.
        """
        output = self.ask({"arguments": arguments})
        return ToolRun(status=output["status"], out=output["out"], err=output["err"])
