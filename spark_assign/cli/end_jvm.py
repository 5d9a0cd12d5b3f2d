"""The guard of a JVM: a process that ends it, and removes its directories, when its parent ends.

Run as a file, so that it starts quickly. It leads the process group that the JVM is in. Its input
names directories, each followed by a zero byte; the parent writes nothing else and holds the other
end of the pipe. At the end of its input the parent has ended, and everything else follows.
"""

import os
import shutil
import signal
import sys
import time
from typing import Final

_TICK_S: Final = 0.01
_GROUP_S: Final = 1.0  # where nobody reaps them, killed processes stay in their group
_DIRECTORIES_S: Final = 10.0  # a process that is killed ends its calls of the system first


def main() -> None:
    """Wait for the end of the parent, kill the own process group, remove the directories."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # they are for the parent
        signal.signal(number, signal.SIG_IGN)
    directories = sys.stdin.buffer.read().split(b"\0")[:-1]
    group = os.getpgrp()
    if os.fork():
        signal.pause()  # killed by the child, which can leave the group as it does not lead it
    os.setpgid(0, 0)
    begin = time.monotonic()
    while _kill(group) or any(map(os.path.exists, directories)):
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
        are_left = any(map(os.path.exists, directories))
        if time.monotonic() - begin > (_DIRECTORIES_S if are_left else _GROUP_S):
            break
        time.sleep(_TICK_S)


def _kill(group: int) -> bool:
    """Kill a process group; return whether there was one."""
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
