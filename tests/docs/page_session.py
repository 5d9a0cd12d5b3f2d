"""Run the blocks of one page (see `pages.py`) in a directory that looks like a checkout."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

from system_tests.support.fork_server import ForkedProcess, ForkServer
from tests.docs.pages import ROOT, Block, agrees, masked, pattern_of, prints

# Ports that pages show: of a broker, and of two servers of queries.
SHOWN_PORTS = ("9092", "8001", "8002")
# Far above the time that any command needs.
COMMAND_S = 300
PRINTS_S = 300
# What is forked from a process that has imported it, unless the shell does more than start it.
FORKED = re.compile(
    r"(?:python (?:-u )?(?:-m )?)?"
    r"(assignor|rolling-bounce|(?:assignor|system_tests)\.[\w.]+|[\w/]+\.py)(?: [^|<>&;$`]*)?"
)
ENTRIES = {"assignor": "assignor.entry", "rolling-bounce": "system_tests.entry"}


@dataclass
class Background:
    """A command in the background; a file has its output, of which so many lines were met."""

    command: str
    process: subprocess.Popen | ForkedProcess
    output: Path
    seen: int = 0

    def text(self):
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass
class PageSession:
    """One run of a page: a directory, ports, background commands, and Python blocks so far."""

    directory: Path
    server: ForkServer
    ports: dict[str, str] = field(default_factory=dict)
    reserved: list[socket.socket] = field(default_factory=list)
    running: list[Background] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    shown: dict[int, Block] = field(default_factory=dict)

    def __post_init__(self):
        for shown in SHOWN_PORTS:
            self.reserved.append(reserved_port())
            self.ports[shown] = str(self.reserved[-1].getsockname()[1])
            if sys.platform != "linux":
                self.reserved[-1].close()
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (self.directory / entry.name).symlink_to(entry)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for command in self.running:
            end(command, signal.SIGKILL)
        for port in self.reserved:
            port.close()

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
        path.write_text(self.with_own_ports(block.body), encoding="utf-8")

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
        paths = [self.directory / name for name in (".stdout", ".stderr")]
        with paths[0].open("wb") as out, paths[1].open("wb") as err:
            process = self.process(command, out, err)
        try:
            status = process.wait(COMMAND_S)
        finally:
            process.kill()
        printed = "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)
        return status, self.with_shown_ports(printed)

    def process(self, command, out, err):
        """Start a command, without input, that prints to files."""
        command = self.with_own_ports(command)
        match = FORKED.fullmatch(command)
        if match is None:
            return subprocess.Popen(
                ["bash", "-c", f"exec {command}" if out is err else command],
                cwd=self.directory,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        words = shlex.split(command)
        module = ENTRIES.get(match[1], match[1])
        argv = ["tests.docs.forked", str(self.directory), module]
        argv += words[words.index(match[1]) + 1 :]
        with Path(os.devnull).open("rb") as nothing:
            files = (nothing.fileno(), out.fileno(), err.fileno())
            return ForkedProcess(self.server, argv, files)

    def start(self, block):
        """Start background commands, and wait for the output that the page shows."""
        for command, shown in block.commands:
            output = self.directory / f".printed-{len(self.running)}"
            with output.open("wb") as file:
                process = self.process(command, file, file)
            self.running.append(Background(command, process, output))
            self.await_output(self.running[-1], shown, block)

    def await_output(self, command, shown, block):
        """Wait until these lines were printed in this order, with any lines between them."""
        lines = "".join(f"...\n{line}\n" for line in shown.splitlines())
        wanted = pattern_of(lines, shape=block.marked("shape") is not None)
        deadline = time.monotonic() + PRINTS_S
        while True:
            printed = self.with_shown_ports(command.text()).splitlines(keepends=True)
            if block.marked("shape") is not None:
                printed = [f"{masked(line)}\n" for line in printed]
            text = "".join(printed)
            found = wanted.match("".join(printed[command.seen :]))
            if found is not None:
                command.seen += found.group().count("\n")
                return
            assert command.process.poll() is None, f"{block}: {command.command} ended\n{text}"
            assert time.monotonic() < deadline, f"{block}: {command.command} printed\n{text}"
            time.sleep(0.05)

    def named(self, start):
        """Return the last background command that starts with a text."""
        return next(item for item in reversed(self.running) if item.command.startswith(start))

    def run_python(self, page):
        """Run all Python blocks of the page, in order, in one process."""
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
        blocks = json.dumps([page, [self.with_own_ports(text) for text in self.python]])
        for name, text in (("python_blocks.py", script), ("python_blocks.json", blocks)):
            (self.directory / name).write_text(text, encoding="utf-8")
        status, output = self.printed("python python_blocks.py python_blocks.json")
        assert status == 0, f"{page}\n{output}"
        printed = output.split(chr(30))
        wrong = [prints(page, shown, printed[number]) for number, shown in self.shown.items()]
        assert not any(wrong), wrong

    def with_own_ports(self, text):
        """Return the text with this session's ports."""
        for shown, port in self.ports.items():
            text = re.sub(rf"\b{shown}\b", port, text)
        return text

    def with_shown_ports(self, text):
        """Return the text with the ports that the page shows."""
        for shown, port in self.ports.items():
            text = re.sub(rf"\b{port}\b", shown, text)
        return text


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


def reserved_port():
    """Return a socket whose port no other process gets, unless it asks for this one.

    On Linux, sockets with `SO_REUSEADDR` share a port as long as only one of them listens.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
