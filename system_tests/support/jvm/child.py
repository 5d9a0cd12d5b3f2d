"""A JVM in a separate process, which answers each line of JSON with a line of JSON.

A process can load the classes of one release only.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from system_tests.errors import EnvironmentFailureError

_END_S = 5.0


class JvmChild:
    """A process that runs a module of this package with a release's classes; a context manager.

    Args:
        module: its name, `codec` or `tools`.
        release: exact name.
        what: its name in messages.
    """

    def __init__(self, module: str, release: str, *, what: str) -> None:
        self.release = release
        self._what = what
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"system_tests.support.jvm.{module}", release],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Return it; several JVMs start in parallel."""
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

    def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one line and return the answer.

        Raises:
            EnvironmentFailureError: the process ended, because jars or Java are missing.
        """
        into, out = self._process.stdin, self._process.stdout
        if into is None or out is None:
            raise RuntimeError(f"a {self._what} was started without pipes")
        try:
            into.write(json.dumps(question) + "\n")
            into.flush()
            answer = out.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise EnvironmentFailureError(
                f"the {self._what} of release {self.release} ended; see its errors"
            )
        message: Mapping[str, Any] = json.loads(answer)
        return message
