"""A process that runs one command, and stops it when its own parent ends.

`python -m system_tests.real.guard FOLDER COMMAND...` starts COMMAND, prints its process id, and
ends with its status. When standard input ends, the parent is gone, killed perhaps: then COMMAND is
killed, and FOLDER is removed. A JVM cannot do that for itself.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_READ_SIZE = 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its status, negative for a signal."""
    folder, *command = sys.argv[1:] if arguments is None else arguments
    # Before the first thread, since the child begins as a copy of this process.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 no thread yet
    )
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    orphaned = threading.Event()
    threading.Thread(target=_watch_parent, args=(child, orphaned), daemon=True).start()
    status = child.wait()
    if orphaned.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return status


def _end_with_parent() -> None:
    """Have the kernel kill this child when the guard process is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _watch_parent(child: "subprocess.Popen[bytes]", orphaned: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), _READ_SIZE):
        pass
    orphaned.set()
    child.kill()


if __name__ == "__main__":
    sys.exit(main())
