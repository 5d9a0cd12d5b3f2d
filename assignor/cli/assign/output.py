"""Keep what a user's strategy prints out of the answers on stdout."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

_STDOUT, _STDERR = 1, 2


@contextmanager
def output_on_stderr() -> Iterator[None]:
    """Return a context in which stdout is stderr, for `print` and for writes to descriptor 1."""
    with redirect_stdout(sys.stderr):
        try:
            saved = os.dup(_STDOUT)
        except OSError:  # closed: nothing can be written there
            yield
            return
        try:
            with suppress(OSError):  # stderr is closed
                os.dup2(_STDERR, _STDOUT)
            yield
        finally:
            os.dup2(saved, _STDOUT)
            os.close(saved)
