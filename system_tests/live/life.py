"""A member process from its first line of input to its exit status, whatever client it runs on."""

import signal
import sys
import threading
from typing import Protocol

from system_tests.live.config import MemberConfig
from system_tests.live.parent import end_with_parent

EXIT_FAILED = 1
_EXIT_USAGE = 2
_EXIT_SURROUNDINGS = 3


class Run(Protocol):
    """A member's life: returns the exit status."""

    def __call__(self, config: MemberConfig, *, stopping: threading.Event) -> int:
        """Be a member until `stopping` is set."""


def run_member(run: Run, *, surroundings: type[Exception]) -> int:
    """Read the configuration, tie this process to its parent, run.

    Args:
        run: the member.
        surroundings: the client's errors, which are not the member's fault.
    """
    arguments = sys.argv[1:]
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    try:
        config = MemberConfig.from_json(arguments[0] if arguments else sys.stdin.readline())
    except ValueError as error:
        sys.stderr.write(f"bad configuration: {error}\n")
        return _EXIT_USAGE
    end_with_parent(stopping)
    try:
        return run(config, stopping=stopping)
    except surroundings as error:
        sys.stderr.write(f"{config.name}: {type(error).__name__}: {error}\n")
        return _EXIT_SURROUNDINGS
