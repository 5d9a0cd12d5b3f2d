"""Run the blocks of one page (see `pages.py`) in a directory that looks like a checkout."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT, Block, agrees, masked, pattern_of, prints

SHOWN_PORT = "9092"
PORTS = (20_000, 32_000)
# Far above the time that any command needs.
COMMAND_S = 300
PRINTS_S = 300


@dataclass
class Background:
    """A command in the background; a file has its output."""

    command: str
    process: subprocess.Popen
    output: Path
    seen: int = 0

    def text(self):
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass
class PageSession:
    """One run of a page: a directory, a port, background commands, and Python blocks so far."""

    directory: Path
    port: str = ""
    running: list[Background] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    shown: dict[int, Block] = field(default_factory=dict)

    def __post_init__(self):
        self.port = str(free_port())
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (self.directory / entry.name).symlink_to(entry)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for command in self.running:
            end(command, signal.SIGKILL)

    def run(self, block):
        """Run one block.

        Raises:
            AssertionError: its output or exit status differs from the page.
        """
        if block.why_not:
            return
        for holds, do in (
            (block.marked("file") is not None, self.save),
            (block.kind in ("python", "then"), self.remember),
            (block.marked("prints") is not None, self.remember_output),
            (block.kind in ("stop", "kill"), self.signal),
            (block.marked("then prints:") is not None, self.printed_next),
            (block.marked("background") is not None, self.start),
            (block.kind in ("console", "sh"), self.check),
        ):
            if holds:
                do(block)
                return

    def remember(self, block):
        """Store a Python block; all of them run at the end, in one process."""
        self.python.append("\n" * (block.line - 1) + block.body)

    def remember_output(self, block):
        """Store the shown output of the last Python block."""
        self.shown[len(self.python) - 1] = block

    def signal(self, block):
        """Send a signal to a background command and wait for its end."""
        end(self.named(block.body), signal.SIGINT if block.kind == "stop" else signal.SIGKILL)

    def printed_next(self, block):
        """Wait for more output of a background command."""
        self.await_output(self.named(block.marked("then prints:")), block.body, block)

    def save(self, block):
        """Write a block to a file; replace a link into the checkout instead of following it."""
        path = self.directory / block.marked("file")
        if path.is_symlink():
            path.unlink()
        path.write_text(self.with_own_port(block.body), encoding="utf-8")

    def check(self, block):
        """Run commands to their end and compare their output."""
        for command, shown in block.commands:
            self.check_one(command, shown, block)

    def check_one(self, command, shown, block):
        """Run a command to its end and compare its output; with the mark `until`, repeat it."""
        deadline = time.monotonic() + PRINTS_S
        while True:
            status, output = self.printed(command)
            if holds(block, shown, status, output):
                return
            can_wait = block.marked("until") is not None and time.monotonic() < deadline
            assert can_wait, f"{block}: {command} ended with {status}\n{output}"
            time.sleep(0.2)

    def printed(self, command):
        """Return the exit status of a command and its whole output."""
        done = subprocess.run(
            ["bash", "-c", self.with_own_port(command)],
            cwd=self.directory,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, self.with_shown_port(done.stdout + done.stderr)

    def start(self, block):
        """Start background commands, and wait for the output that the page shows."""
        for command, shown in block.commands:
            output = self.directory / f".printed-{len(self.running)}"
            with output.open("wb") as file:
                process = subprocess.Popen(
                    ["bash", "-c", f"exec {self.with_own_port(command)}"],
                    cwd=self.directory,
                    env=environment(),
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                )
            self.running.append(Background(command, process, output))
            self.await_output(self.running[-1], shown, block)

    def await_output(self, command, shown, block):
        """Wait until these lines were printed in this order, with any lines between them."""
        lines = "".join(f"...\n{line}\n" for line in shown.splitlines())
        wanted = pattern_of(lines, shape=block.marked("shape") is not None)
        deadline = time.monotonic() + PRINTS_S
        while True:
            text = self.with_shown_port(command.text())
            if block.marked("shape") is not None:
                text = "".join(f"{masked(line)}\n" for line in text.splitlines())
            found = wanted.match(text, command.seen)
            if found is not None:
                command.seen = found.end()
                return
            assert command.process.poll() is None, f"{block}: {command.command} ended\n{text}"
            assert time.monotonic() < deadline, f"{block}: {command.command} printed\n{text}"
            time.sleep(0.05)

    def named(self, start):
        """Return the last background command that starts with a text."""
        return next(item for item in reversed(self.running) if item.command.startswith(start))

    def run_python(self, page):
        """Run all Python blocks of the page, in order, in one separate process."""
        if not self.python:
            return
        script = textwrap.dedent("""
            import json, os, sys
            page, blocks = json.load(open(sys.argv[1], encoding="utf-8"))
            names = {"__name__": "page"}
            for block in blocks:
                exec(compile(block, page, "exec"), names)
                sys.stdout.write(chr(30))
            sys.stdout.flush()
            os._exit(0)  # threads of consumers that a page never closes
        """)
        (self.directory / ".python.json").write_text(
            json.dumps([page, [self.with_own_port(text) for text in self.python]]), encoding="utf-8"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, ".python.json"],
            cwd=self.directory,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, f"{page}\n{done.stdout}{done.stderr}"
        printed = done.stdout.split(chr(30))
        wrong = [prints(page, shown, printed[number]) for number, shown in self.shown.items()]
        assert not any(wrong), wrong

    def with_own_port(self, text):
        """Return the text with this session's port."""
        return re.sub(rf"\b{SHOWN_PORT}\b", self.port, text)

    def with_shown_port(self, text):
        """Return the text with the port that the page shows."""
        return re.sub(rf"\b{self.port}\b", SHOWN_PORT, text)


def holds(block, shown, status, output):
    """Return whether exit status and output of a command equal those of the block."""
    if status != int(block.marked("exit") or 0):
        return False
    shape = block.marked("shape") is not None
    if shape or block.marked("exact") is not None:
        return agrees(output, shown, shape=shape)
    return not shown or agrees(output, f"{shown.splitlines()[0]}\n...", shape=True)


def end(command, number):
    """Send a signal to a background command, and wait for its end."""
    if command.process.poll() is None:
        command.process.send_signal(number)
        try:
            command.process.wait(PRINTS_S)
        except subprocess.TimeoutExpired:
            command.process.kill()
            command.process.wait()


def environment():
    """Return an environment with this interpreter's commands, plain output and a fixed width."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names = {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **names}


def free_port():
    """Return a free port below the range that systems use for outgoing connections."""
    while True:
        port = random.randint(*PORTS)  # noqa: S311 no secret
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
