"""The guard of a JVM: a process that ends it, and removes its directories, when its parent ends.

Run as a file, so that it starts quickly. It leads the process group that the JVM is in. Its input
names directories, each followed by a zero byte; the parent writes nothing else and holds the other
end of the pipe. At the end of its input the parent has ended, and everything else follows.

Its argument is one end of another pipe, whose other end the JVM holds. At the end of that file the
JVM has ended, also where nobody reaps it.
"""

import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from typing import Final

_TICK_S: Final = 0.01
_LIMIT_S: Final = 10.0


def main() -> None:
    """Wait for the end of the parent, kill the own process group, remove the directories."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # they are for the parent
        signal.signal(number, signal.SIG_IGN)
    directories = sys.stdin.buffer.read().split(b"\0")[:-1]
    group = os.getpgrp()
    if os.fork():
        signal.pause()  # killed by the child, which can leave the group as it does not lead it
    os.setpgid(0, 0)
    ends, jvm = time.monotonic() + _LIMIT_S, int(sys.argv[1])
    while time.monotonic() < ends:
        with suppress(OSError):  # there is no such group any more
            os.killpg(group, signal.SIGKILL)
        if select.select([jvm], [], [], _TICK_S)[0]:
            break
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
