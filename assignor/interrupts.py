"""How a program ends at Ctrl-C: within two seconds, with one line and exit status 130.

Before a command begins and after it has ended, an interrupt ends the process immediately. While a
command runs, the first interrupt raises KeyboardInterrupt in the main thread, and the command
cleans up. A thread ends the process at the next interrupt, and if cleaning up takes longer than
`GRACE_S`, for example because the main thread runs C code. Python's handler in C writes each signal
to a pipe (`signal.set_wakeup_fd`), which the thread reads: it does not depend on the main thread.

This module imports nothing that takes time. Programs import it first, so that an interrupt is also
handled while other modules are imported.
"""

import _thread
import importlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

EXIT_INTERRUPTED = 130
GRACE_S = 1.5
"""How long a command may clean up."""

_STDOUT, _STDERR = 1, 2
_SHOW_CURSOR = b"\x1b[?25h\r\n"  # progress bars hide it


class _Interrupts:
    """The interrupts of this process.

    Attributes:
        program: its name.
        numbers: the signals that interrupt it.
        is_watched: whether the thread runs.
        is_cleaned_up: whether a command runs, which cleans up after KeyboardInterrupt.
        was_interrupted, was_raised, was_reported: what has happened.
        first: called at the first interrupt, which does nothing else; None: not set.
        spare: number of interrupts that do nothing else.
    """

    def __init__(self) -> None:
        self.program = ""
        self.numbers: frozenset[int] = frozenset()
        self.is_watched = self.is_cleaned_up = False
        self.was_interrupted = self.was_raised = self.was_reported = False
        self.first: Callable[[], object] | None = None
        self.spare = 0

    def watch(self, pipe: int) -> NoReturn:
        """End the process as this module says; runs on the thread."""
        self._wait(pipe, None)
        while self.spare:
            self.spare -= 1
            self._wait(pipe, None)
        self.was_interrupted = True
        if self.is_cleaned_up:
            self._wait(pipe, GRACE_S)
        self.leave(EXIT_INTERRUPTED)

    def _wait(self, pipe: int, seconds: float | None) -> None:
        """Wait for a signal that interrupts."""
        ends = time.monotonic() + (seconds or 0)
        left = seconds
        while left is None or left > 0:
            if select.select([pipe], [], [], left)[0] and os.read(pipe, 1)[0] in self.numbers:
                return
            left = None if seconds is None else ends - time.monotonic()

    def leave(self, status: int) -> NoReturn:
        """Report the interrupt, unless that was done, and end the process."""
        if claim_report():
            for stream in (_STDOUT, _STDERR):
                if self.is_cleaned_up and os.isatty(stream):
                    _write(stream, _SHOW_CURSOR)
            _write(_STDERR, f"{self.program}: interrupted.\n".encode())
        else:
            time.sleep(0.1)  # the main thread may be writing it
        os._exit(status)


def _write(stream: int, line: bytes) -> None:
    """Write to a stream that takes it now."""
    with suppress(OSError):
        if select.select([], [stream], [], 0)[1]:
            os.write(stream, line)


def _report_unraisable(error: "sys.UnraisableHookArgs") -> None:
    """Report an exception that cannot be raised, unless it is an interrupt."""
    if error.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(error)


_INTERRUPTS = _Interrupts()


def run_program(program: str, module: str) -> NoReturn:
    """Run the command `main` of a module and end the process with its exit status.

    Args:
        program: its name, for messages.
        module: imported here, so that an interrupt meanwhile is handled.
    """
    here = _INTERRUPTS
    here.program = program
    sys.unraisablehook = _report_unraisable
    if os.name == "posix":
        while (spare := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
            pass  # a closed standard stream, whose number the pipe would get
        os.close(spare)
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
        here.is_watched = True
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            handle_interrupts(signal.SIGINT)
        _thread.start_new_thread(here.watch, (reads,))
    try:
        importlib.import_module(module).main(prog_name=program)
    except SystemExit as ends:
        if here.was_interrupted:
            claim_report()
            os._exit(ends.code if isinstance(ends.code, int) else EXIT_INTERRUPTED)
        raise
    except BaseException:
        if here.was_interrupted:
            here.leave(EXIT_INTERRUPTED)
        raise
    finally:
        here.is_cleaned_up = False
    sys.exit()


def handle_interrupts(*numbers: int, first: Callable[[], object] | None = None) -> None:
    """Let signals interrupt this process.

    Args:
        numbers: the signals.
        first: called at the first one, which does nothing else; it may ask a command to end.
    """
    here = _INTERRUPTS
    here.first, here.spare = first, int(first is not None)
    here.numbers |= frozenset(numbers)
    for number in numbers:
        signal.signal(number, raise_interrupt)


def raise_interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 signal's signature
    """Interrupt the main thread; a handler of signals.

    Raises:
        KeyboardInterrupt: while a command runs, at the first interrupt.
    """
    here = _INTERRUPTS
    if here.first is not None:
        first, here.first = here.first, None
        first()
        return
    here.was_interrupted = True
    if here.is_watched:
        if here.was_raised or not here.is_cleaned_up:
            return  # the thread ends the process
        if "logging" in sys.modules:
            sys.modules["logging"].disable()  # later records are consequences of the interrupt
    here.was_raised = True
    raise KeyboardInterrupt


def begin_command() -> None:
    """From now on, an interrupt raises KeyboardInterrupt, and the command cleans up."""
    _INTERRUPTS.is_cleaned_up = True


def was_interrupted() -> bool:
    """Return whether a signal has interrupted this program."""
    return _INTERRUPTS.is_watched and _INTERRUPTS.was_interrupted


def claim_report() -> bool:
    """Return whether the caller is the first one, who reports the interrupt of this program."""
    was_reported, _INTERRUPTS.was_reported = _INTERRUPTS.was_reported, _INTERRUPTS.is_watched
    return not was_reported
