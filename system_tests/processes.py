"""How processes that share work are started."""

import threading
from multiprocessing import get_all_start_methods


def can_fork() -> bool:
    """Whether this process may be forked: the platform can, and no other thread holds a lock."""
    return "fork" in get_all_start_methods() and threading.active_count() == 1
