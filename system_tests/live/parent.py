"""A child that cannot outlive its parent, even one that was killed.

Two ropes: the kernel's (Linux only), and the end of standard input, which the parent holds open and
which ends when the parent does. Either is enough.
"""

import ctypes
import os
import sys
import threading
from time import monotonic, sleep

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_CLEAN_END_S = 2.0
_READ_SIZE = 4096


def end_with_parent(stopping: threading.Event) -> None:
    """Tie this process to its parent.

    Args:
        stopping: set when standard input ends; if the process is still there two seconds later,
            it ends at once.
    """
    ask_kernel_to_end_with_parent()
    threading.Thread(target=_watch_stdin, args=(stopping,), daemon=True).start()


def ask_kernel_to_end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends (Linux only)."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return  # a C library without prctl: standard input is the rope that holds
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the rope was tied


def _watch_stdin(stopping: threading.Event) -> None:
    descriptor = sys.stdin.fileno()
    try:
        while os.read(descriptor, _READ_SIZE):
            pass
    except OSError:
        pass  # a closed descriptor says the same as an end of file
    stopping.set()
    deadline = monotonic() + _CLEAN_END_S
    while monotonic() < deadline:
        sleep(0.1)
    os._exit(1)
