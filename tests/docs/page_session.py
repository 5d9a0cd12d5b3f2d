"""Runs the blocks of one page (see `pages.py`) in a directory that looks like a checkout."""

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

from tests.docs.pages import ROOT, agrees, masked, pattern_of

SHOWN_PORT = "9092"
PORTS = (20_000, 32_000)
# Generous: nothing here says how fast a machine is.
COMMAND_S = 300
PRINTS_S = 300


@dataclass
class Background:
    """A command that goes on, with what it has printed in a file."""

    command: str
    process: subprocess.Popen
    output: Path
    seen: int = 0

    def text(self):
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass
class PageSession:
    """One reader: a directory, a port, commands that go on, and Python so far."""

    directory: Path
    port: str = ""
    running: list[Background] = field(default_factory=list)
    python: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.port = str(free_port())
        for one in ROOT.iterdir():
            if not one.name.startswith("."):
                (self.directory / one.name).symlink_to(one)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.running:
            end(one, signal.SIGKILL)

    def run(self, block):
        """Do what a block says; AssertionError where it does not hold."""
        if block.why_not:
            return
        for holds, do in (
            (block.marked("file") is not None, self.save),
            (block.kind in ("python", "then"), self.remember),
            (block.kind in ("stop", "kill"), self.signal),
            (block.marked("then prints:") is not None, self.printed_next),
            (block.marked("background") is not None, self.start),
            (block.kind in ("console", "sh"), self.check),
        ):
            if holds:
                do(block)
                return

    def remember(self, block):
        """Python is run at the end, at once."""
        self.python.append("\n" * (block.line - 1) + block.body)

    def signal(self, block):
        """End a command in the background."""
        end(self.named(block.body), signal.SIGINT if block.kind == "stop" else signal.SIGKILL)

    def printed_next(self, block):
        """Wait for more of a command in the background."""
        self.await_output(self.named(block.marked("then prints:")), block.body, block)

    def save(self, block):
        """Write a block to a file; a link into the checkout is replaced, never written through."""
        path = self.directory / block.marked("file")
        if path.is_symlink():
            path.unlink()
        path.write_text(self.ours(block.body), encoding="utf-8")

    def check(self, block):
        """Run commands to their ends and compare."""
        for command, shown in block.commands:
            self.check_one(command, shown, block)

    def check_one(self, command, shown, block):
        """Run a command to its end and compare; over and over where it is marked so."""
        deadline = time.monotonic() + PRINTS_S
        while True:
            status, said = self.printed(command)
            if holds(block, shown, status, said):
                return
            can_wait = block.marked("until") is not None and time.monotonic() < deadline
            assert can_wait, f"{block}: {command} ended with {status}\n{said}"
            time.sleep(0.2)

    def printed(self, command):
        """Exit status of a command, and all that it printed."""
        done = subprocess.run(
            ["bash", "-c", self.ours(command)],
            cwd=self.directory,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, self.theirs(done.stdout + done.stderr)

    def start(self, block):
        """Start commands that go on, and wait for what they are shown to print."""
        for command, shown in block.commands:
            output = self.directory / f".printed-{len(self.running)}"
            with output.open("wb") as file:
                process = subprocess.Popen(
                    ["bash", "-c", f"exec {self.ours(command)}"],
                    cwd=self.directory,
                    env=environment(),
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                )
            self.running.append(Background(command, process, output))
            self.await_output(self.running[-1], shown, block)

    def await_output(self, one, shown, block):
        """Wait until these lines have come, in this order; others may come between them."""
        lines = "".join(f"...\n{line}\n" for line in shown.splitlines())
        wanted = pattern_of(lines, shape=block.marked("shape") is not None)
        deadline = time.monotonic() + PRINTS_S
        while True:
            said = self.theirs(one.text())
            if block.marked("shape") is not None:
                said = "".join(f"{masked(line)}\n" for line in said.splitlines())
            found = wanted.match(said, one.seen)
            if found is not None:
                one.seen = found.end()
                return
            assert one.process.poll() is None, f"{block}: {one.command} ended\n{said}"
            assert time.monotonic() < deadline, f"{block}: {one.command} printed\n{said}"
            time.sleep(0.05)

    def named(self, start):
        """The last command in the background that begins so."""
        return next(one for one in reversed(self.running) if one.command.startswith(start))

    def run_python(self, page):
        """Run all Python of the page, in order, in one process of its own."""
        if not self.python:
            return
        script = textwrap.dedent("""
            import json, os, sys
            page, blocks = json.load(open(sys.argv[1], encoding="utf-8"))
            names = {"__name__": "page"}
            for block in blocks:
                exec(compile(block, page, "exec"), names)
            sys.stdout.flush()
            os._exit(0)  # threads of consumers that a page never closes
        """)
        (self.directory / ".python.json").write_text(
            json.dumps([page, [self.ours(one) for one in self.python]]), encoding="utf-8"
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

    def ours(self, text):
        """With this session's port."""
        return re.sub(rf"\b{SHOWN_PORT}\b", self.port, text)

    def theirs(self, text):
        """With the port that the page shows."""
        return re.sub(rf"\b{self.port}\b", SHOWN_PORT, text)


def holds(block, shown, status, said):
    """Whether a command ended and printed as the block has it."""
    if status != int(block.marked("exit") or 0):
        return False
    shape = block.marked("shape") is not None
    if shape or block.marked("exact") is not None:
        return agrees(said, shown, shape=shape)
    return not shown or agrees(said, f"{shown.splitlines()[0]}\n...", shape=True)


def end(one, number):
    """Send a signal, and wait for the end."""
    if one.process.poll() is None:
        one.process.send_signal(number)
        try:
            one.process.wait(PRINTS_S)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()


def environment():
    """The commands of this interpreter first in the path; plain output of a known width."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names = {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **names}


def free_port():
    """A port that nobody listens on, below those that systems give to outgoing connections."""
    while True:
        port = random.randint(*PORTS)  # noqa: S311 no secret
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
