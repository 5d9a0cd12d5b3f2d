"""How worker processes are started."""

import threading
from multiprocessing import get_all_start_methods


def can_fork() -> bool:
    """Return whether this process may be forked: the platform can, and it has no other thread."""
    return "fork" in get_all_start_methods() and threading.active_count() == 1
