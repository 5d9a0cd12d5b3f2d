"""Member processes of a live bounce, one module a client."""

from system_tests.live.members.config import CLIENT_SETTINGS
from system_tests.live.members.process import ask_kernel_to_end_with_parent

__all__ = [
    "CLIENT_SETTINGS",
    "ask_kernel_to_end_with_parent",
]
