"""The codecs of a real release, asked from here: its JVM runs in a process of its own."""

import json
import subprocess
import sys
from contextlib import suppress
from typing import Self

from system_tests.surroundings import SurroundingsError

_END_S = 5.0


class RealCodec:
    """A release's codecs in a process of their own; use it as a context manager.

    Raises:
        SurroundingsError: it ended, for want of jars or of a Java.
    """

    def __init__(self, release: str) -> None:
        self.release = release
        self._process = subprocess.Popen(
            [sys.executable, "-m", "system_tests.real.jvm_codec", release],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Return the codec; it starts while others do."""
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

    def through(self, kind: str, data: bytes) -> bytes:
        """Decode and encode by the real class; `kind` is "subscription" or "assignment".

        Raises:
            ValueError: the class refuses the bytes; the message is its own.
        """
        into, out = self._process.stdin, self._process.stdout
        if into is None or out is None:
            raise RuntimeError("a codec was started without pipes")
        try:
            into.write(json.dumps({"kind": kind, "hex": data.hex()}) + "\n")
            into.flush()
            answer = out.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SurroundingsError(f"the codec of release {self.release} ended; see its errors")
        found = json.loads(answer)
        if found["event"] == "error":
            raise ValueError(found["error"])
        return bytes.fromhex(found["hex"])
