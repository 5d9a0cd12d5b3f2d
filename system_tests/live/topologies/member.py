"""A member process of a change of the topology, as the driver sees it."""

import json
import subprocess
import threading
from collections import deque
from typing import IO

from system_tests.json_lines import write_line
from system_tests.live.member_process import MemberProcess
from system_tests.live.topologies.programs import MemberConfig

_PROGRAM = "system_tests.live.topologies.programs"
_END_S = 60.0


class Member:
    """A member process; its events and its log are read on threads.

    Attributes:
        config: as given.
        errors: what the member reported to `on_error`.
        led_at: when it last led the group; 0.0: never.
    """

    def __init__(self, config: MemberConfig) -> None:
        self.config = config
        self.errors: list[str] = []
        self.led_at = 0.0
        self._log: deque[str] = deque(maxlen=1)
        self._process = MemberProcess.start_process(_PROGRAM)
        self._readers = [
            threading.Thread(target=read, args=(pipe,), daemon=True)
            for read, pipe in (
                (self._read_events, self._process.stdout),
                (self._read_log, self._process.stderr),
            )
        ]
        for reader in self._readers:
            reader.start()
        if self._process.stdin is not None:
            self._process.stdin.write(write_line(config) + "\n")
            self._process.stdin.flush()

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def last_line(self) -> str:
        """The last line of its log."""
        return "".join(self._log)

    def stop(self, *, kill: bool = False) -> None:
        """End the process and wait for it."""
        if self.is_running:
            (self._process.kill if kill else self._process.terminate)()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_S)
        for reader in self._readers:
            reader.join(_END_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _read_events(self, pipe: IO[str] | None) -> None:
        for line in pipe or ():
            event = json.loads(line)
            match event["event"]:
                case "error":
                    self.errors.append(event["why"])
                case "led":
                    self.led_at = event["at"]
                case _:
                    pass

    def _read_log(self, pipe: IO[str] | None) -> None:
        for line in pipe or ():
            self._log.append(line.strip())
