"""Kafka's own feature tool, run from here: its JVM lives in a process of its own."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from system_tests.surroundings import SurroundingsError

_END_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """What one run of the tool said, and its exit status."""

    status: int
    out: str
    err: str


class FeatureTool:
    """The tool of a release; use it as a context manager.

    Args:
        release: exact name.
    """

    def __init__(self, release: str) -> None:
        self.release = release
        self._process = subprocess.Popen(
            [sys.executable, "-m", "system_tests.real.jvm_features", release],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Return the tool; its JVM starts while others do."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._process.kill()
        self._process.wait()

    def run(self, *arguments: str) -> ToolRun:
        """Run it with the arguments of `kafka-features.sh`.

        Raises:
            SurroundingsError: its process ended, for want of jars or of a Java.
        """
        into, out = self._process.stdin, self._process.stdout
        if into is None or out is None:
            raise RuntimeError("a tool was started without pipes")
        try:
            into.write(json.dumps({"arguments": arguments}) + "\n")
            into.flush()
            answer = out.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SurroundingsError(f"the tool of release {self.release} ended; see its errors")
        said = json.loads(answer)
        return ToolRun(status=said["status"], out=said["out"], err=said["err"])
