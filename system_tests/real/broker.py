"""One real Kafka broker: KRaft, a single node on loopback, in a folder of its own.

The settings are the same on 3.9 and 4.x. The broker is the child of a guard process, which ends it
and removes its folder even if this process is killed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from time import monotonic, sleep
from typing import Any

from system_tests.errors import EnvironmentFailureError
from system_tests.real.jars import broker_jars
from system_tests.real.java import find_java
from system_tests.real.ports import HOST, answers, check_free, free_port, listens
from system_tests.real.properties import secured_protocols, server_properties

_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_FORMAT_S = 180
_READY_S = 180.0
_STOP_S = 60.0
_RETRY_S = 0.1
_LOG_TAIL = 4096
# Tests start several JVMs on two cores: only the first compiler, and one garbage collector thread.
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")


class RealBroker:
    """A broker process: started, stopped, killed and started again on the same data.

    Args:
        release: exact name of a Kafka release, 3.3 or newer.
        port: of the clients; 0 takes a free one.
        level_release: the release whose feature levels it is formatted with; its own if empty.
        users: password by name; with any there is a second listener, SASL_PLAINTEXT with the
            standard authorizer, on which the first user has all permissions, the others none.
        key_store: PEM file with a key and a certificate; with it there are listeners SSL, for
            clients with this certificate, and with users SASL_SSL.
        beside: the first broker of a cluster, its controller; this one is the second.

    Raises:
        EnvironmentFailureError: no jars, no Java, or its folder cannot be created.
    """

    def __init__(
        self,
        release: str,
        *,
        port: int = 0,
        level_release: str = "",
        users: Mapping[str, str] | None = None,
        key_store: Path | None = None,
        beside: "RealBroker | None" = None,
    ) -> None:
        self.release = release
        self._node_id = 1 if beside is None else 2
        self._level_release, self._users = level_release, dict(users or {})
        self._key_store = key_store
        protocols = secured_protocols(has_users=bool(users), has_keys=key_store is not None)
        self._secured_ports = {name: free_port() for name in protocols}
        self._jars = broker_jars(release)
        self._java = find_java()
        self._folder = Path(tempfile.mkdtemp(prefix=f"kafka-{release}-"))
        self.port = port or free_port()
        self.controller_port: int = beside.controller_port if beside else free_port()
        self._guard: subprocess.Popen[str] | None = None
        self.pid: int | None = None
        self._is_formatted = False

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"{HOST}:{self.port}"

    @property
    def sasl_servers(self) -> str:
        """Address for clients with a user name."""
        return self.servers("SASL_PLAINTEXT")

    @property
    def secured_servers(self) -> dict[str, str]:
        """Addresses for clients with a user name, a certificate or both, by security protocol."""
        return {name: f"{HOST}:{port}" for name, port in self._secured_ports.items()}

    def servers(self, security_protocol: str) -> str:
        """Return the address for clients of a security protocol that it has a listener for."""
        return ({"PLAINTEXT": self.bootstrap_servers} | self.secured_servers)[security_protocol]

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self._guard is not None and self._guard.poll() is None

    def start(self) -> None:
        """Start it, on its former data if it ran before, and wait until it answers.

        Raises:
            EnvironmentFailureError: the port is in use, it ended, or it did not answer in time.
        """
        check_free(self.port)
        if not self._is_formatted:
            self._format()
        with self._log.open("ab") as log:
            self._guard = subprocess.Popen(
                [
                    *(sys.executable, "-m", "system_tests.real.guard", str(self._folder)),
                    *(*self._command(), "kafka.Kafka", str(self._properties)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        pid = self._guard.stdout.readline() if self._guard.stdout else ""
        self.pid = int(pid) if pid.strip() else None
        self._wait_ready()

    def become(self, release: str) -> None:
        """Use another release at the next start, on the same data.

        Raises:
            EnvironmentFailureError: its jars are not available.
        """
        self._jars = broker_jars(release)
        self.release = release

    def stop(self) -> None:
        """Stop it cleanly and keep its data; kill it if it takes longer than 20 s."""
        self._end(lambda guard: guard.terminate())

    def move(self, port: int = 0) -> None:
        """Stop it, and start it on its data with another port; 0 takes a free one.

        To its clients that is a cluster whose brokers were all replaced.

        Raises:
            EnvironmentFailureError: as `start`.
        """
        self.stop()
        self.port = port or free_port()
        self._write_properties()
        self.start()

    def kill(self) -> None:
        """Kill it (SIGKILL) and keep its data."""
        self._end(lambda _: send_signal(self.pid, SIGKILL))

    def pause(self) -> None:
        """Pause it (SIGSTOP): it keeps its connections and does not answer."""
        send_signal(self.pid, SIGSTOP)

    def resume(self) -> None:
        """Resume it (SIGCONT)."""
        send_signal(self.pid, SIGCONT)

    def close(self) -> None:
        """Kill it and remove its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def has_logged(self, text: str) -> bool:
        """Return whether it has logged a line with this text."""
        try:
            with self._log.open(encoding="utf-8", errors="replace") as log:
                return any(text in line for line in log)
        except OSError:
            return False

    def disk_bytes(self) -> int:
        """Return the disk usage of its folder: records, offsets, its log.

        Kafka's index files are sparse, so this counts blocks of 512 bytes.
        """
        blocks = 0
        for path in self._folder.rglob("*"):
            with suppress(OSError):  # a segment that was deleted meanwhile
                blocks += path.stat().st_blocks
        return blocks * 512

    def last_lines(self, count: int = 20) -> list[str]:
        """Return the end of its log: warnings, errors, and decisions of the group coordinator."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - _LOG_TAIL))
                return log.read().decode(errors="replace").splitlines()[-count:]
        except OSError:
            return []

    # Steps

    @property
    def _log(self) -> Path:
        return self._folder / "broker.log"

    @property
    def _properties(self) -> Path:
        return self._folder / "server.properties"

    def _command(self) -> tuple[str, ...]:
        levels = (
            "kafka.coordinator.group=info",
            "org.apache.kafka.coordinator.group=info",
            # Registrations after a change of a feature level.
            "kafka.server.ControllerRegistrationManager=info",  # up to 4.3
            "org.apache.kafka.server.controller.ControllerRegistrationManager=info",
            "org.apache.kafka.image.publisher.BrokerRegistrationTracker=info",
        )
        return (
            str(self._java.executable),
            *JVM_OPTIONS,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *(f"-Dorg.slf4j.simpleLogger.log.{level}" for level in levels),
            "-cp",
            ":".join(str(jar) for jar in self._jars),
        )

    def _write_properties(self) -> None:
        properties = server_properties(
            host=HOST,
            ports={"PLAINTEXT": self.port} | self._secured_ports,
            controller_port=self.controller_port,
            data=self._folder / "data",
            users=self._users,
            key_store=self._key_store,
            node_id=self._node_id,
        )
        self._properties.write_text(properties, encoding="utf-8")

    def _format(self) -> None:
        self._write_properties()
        levels = ("--release-version", self._level_release) if self._level_release else ()
        done = subprocess.run(
            [
                *(*self._command(), "kafka.tools.StorageTool"),
                *("format", "-t", _CLUSTER_ID, "-c", str(self._properties), *levels),
            ],
            capture_output=True,
            text=True,
            timeout=_FORMAT_S,
            check=False,
        )
        if done.returncode:
            output = done.stderr.strip() or done.stdout.strip() or "no output"
            last = output.splitlines()[-1]
            raise EnvironmentFailureError(f"Kafka {self.release} cannot format its folder: {last}")
        self._is_formatted = True

    def _wait_ready(self) -> None:
        deadline = monotonic() + _READY_S
        while self.is_running and monotonic() < deadline:
            if listens(self.port) and answers(self.bootstrap_servers):
                return
            sleep(_RETRY_S)
        what = "did not answer in three minutes" if self.is_running else "ended while it started"
        last = self.last_lines(1)
        self.kill()
        raise EnvironmentFailureError(
            f"Kafka {self.release} on port {self.port} {what}: "
            f"{last[0] if last else 'its log is empty'}; try again, or another port"
        )

    def _end(self, how: Callable[[subprocess.Popen[str]], None]) -> None:
        guard = self._guard
        if guard is None:
            return
        if guard.poll() is None:
            how(guard)
            try:
                guard.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                send_signal(self.pid, SIGKILL)
                guard.wait()
        with ExitStack() as stack:
            for pipe in (guard.stdin, guard.stdout):
                if pipe is not None:
                    stack.callback(pipe.close)
        self._guard = self.pid = None


@contextmanager
def running_real_broker(release: str, **options: Any) -> Iterator[RealBroker]:
    """Provide a running broker, and leave nothing of it behind; options as of `RealBroker`.

    Raises:
        EnvironmentFailureError: it is not available or does not start.
    """
    broker = RealBroker(release, **options)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def send_signal(pid: int | None, number: int) -> None:
    """Send a signal to a process that may be gone."""
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
