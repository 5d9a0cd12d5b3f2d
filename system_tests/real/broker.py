"""One real Kafka broker: KRaft, a single node on loopback, in a folder of its own.

The settings run unchanged on 3.9 and 4.x. The broker is the child of a keeper process, which ends
it and removes its folder even when this process is killed.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from time import monotonic, sleep
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from system_tests.errors import SurroundingsError
from system_tests.real.jars import broker_jars
from system_tests.real.java import find_java
from system_tests.real.properties import server_properties

_HOST = "127.0.0.1"
_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_FORMAT_S = 60
_READY_S = 60.0
_STOP_S = 20.0
_ATTEMPT_MS = 1000
_RETRY_S = 0.1
_LOG_TAIL = 4096
# Tests start several JVMs on two cores: the first compiler alone, and one thread for the heap.
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")


class RealBroker:
    """A broker process: started, stopped, killed and started again on the same data.

    Args:
        release: exact name of a Kafka release, 3.3 or newer.
        port: where clients connect; 0 takes a free one.
        level_release: the release whose feature levels it is formatted with; its own if empty.
        users: password by name; with any there is a second listener, SASL/PLAIN with the standard
            authorizer, on which the first user may do everything and the others nothing.
        beside: the first broker of a cluster, which is its controller, for one more broker of it.

    Raises:
        SurroundingsError: its jars or a Java cannot be had, or its folder cannot be made.
    """

    def __init__(
        self,
        release: str,
        *,
        port: int = 0,
        level_release: str = "",
        users: Mapping[str, str] | None = None,
        beside: "RealBroker | None" = None,
    ) -> None:
        self.release = release
        self._node_id = 1 if beside is None else 2
        self._level_release, self._users = level_release, dict(users or {})
        self.sasl_port = _free_port() if users else 0
        self._jars = broker_jars(release)
        self._java = find_java()
        self._folder = Path(tempfile.mkdtemp(prefix=f"kafka-{release}-"))
        self.port = port or _free_port()
        self.controller_port: int = beside.controller_port if beside else _free_port()
        self._keeper: subprocess.Popen[str] | None = None
        self.pid: int | None = None
        self._is_formatted = False

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return f"{_HOST}:{self.port}"

    @property
    def sasl_servers(self) -> str:
        """What users connect to, if there are any."""
        return f"{_HOST}:{self.sasl_port}"

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._keeper is not None and self._keeper.poll() is None

    def start(self) -> None:
        """Start it, on its former data if it ran before, and wait until it answers.

        Raises:
            SurroundingsError: the port is in use, it ended, or did not answer in a minute.
        """
        _check_free(self.port)
        if not self._is_formatted:
            self._format()
        with self._log.open("ab") as log:
            self._keeper = subprocess.Popen(
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
        said = self._keeper.stdout.readline() if self._keeper.stdout else ""
        self.pid = int(said) if said.strip() else None
        self._wait_ready()

    def become(self, release: str) -> None:
        """Take another release for the next start, on the same data.

        Raises:
            SurroundingsError: its jars cannot be had.
        """
        self._jars = broker_jars(release)
        self.release = release

    def stop(self) -> None:
        """Stop it cleanly and keep its data; kill it if it takes longer than 20 s."""
        self._end(lambda keeper: keeper.terminate())

    def move(self, port: int = 0) -> None:
        """Stop it, and start it on its data with another port; 0 takes a free one.

        To its clients that is a cluster whose brokers were all replaced.

        Raises:
            SurroundingsError: as `start`.
        """
        self.stop()
        self.port = port or _free_port()
        self._write_properties()
        self.start()

    def kill(self) -> None:
        """SIGKILL it and keep its data."""
        self._end(lambda _: send_signal(self.pid, SIGKILL))

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nobody."""
        send_signal(self.pid, SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        send_signal(self.pid, SIGCONT)

    def close(self) -> None:
        """End it and remove its data; what is thrown away need not be stopped cleanly."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def has_logged(self, text: str) -> bool:
        """Whether it has ever logged a line with this text."""
        try:
            with self._log.open(encoding="utf-8", errors="replace") as log:
                return any(text in line for line in log)
        except OSError:
            return False

    def disk_bytes(self) -> int:
        """How much its folder takes of the disk: records, offsets, its log.

        Indexes of Kafka's are mostly holes, so what counts is blocks, of 512 bytes everywhere.
        """
        blocks = 0
        for path in self._folder.rglob("*"):
            with suppress(OSError):  # a segment that was deleted meanwhile
                blocks += path.stat().st_blocks
        return blocks * 512

    def last_lines(self, count: int = 20) -> list[str]:
        """The end of its log: warnings and errors, and what the group coordinator decided."""
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
            # Who registers anew when a feature level changes.
            "kafka.server.ControllerRegistrationManager=info",
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
            host=_HOST,
            port=self.port,
            sasl_port=self.sasl_port,
            controller_port=self.controller_port,
            data=self._folder / "data",
            users=self._users,
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
            said = done.stderr.strip() or done.stdout.strip() or "it said nothing"
            last = said.splitlines()[-1]
            raise SurroundingsError(f"Kafka {self.release} cannot format its folder: {last}")
        self._is_formatted = True

    def _wait_ready(self) -> None:
        deadline = monotonic() + _READY_S
        while self.is_running and monotonic() < deadline:
            if _listens(self.port) and _answers(self.bootstrap_servers):
                return
            sleep(_RETRY_S)
        what = "did not answer in a minute" if self.is_running else "ended while it started"
        last = self.last_lines(1)
        self.kill()
        raise SurroundingsError(
            f"Kafka {self.release} on port {self.port} {what}: "
            f"{last[0] if last else 'its log is empty'}; try again, or another port"
        )

    def _end(self, how: Callable[[subprocess.Popen[str]], None]) -> None:
        keeper = self._keeper
        if keeper is None:
            return
        if keeper.poll() is None:
            how(keeper)
            try:
                keeper.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                send_signal(self.pid, SIGKILL)
                keeper.wait()
        with ExitStack() as stack:
            for pipe in (keeper.stdin, keeper.stdout):
                if pipe is not None:
                    stack.callback(pipe.close)
        self._keeper = self.pid = None


@contextmanager
def running_real_broker(release: str, **options: Any) -> Iterator[RealBroker]:
    """Provide a running broker, and leave nothing of it behind; options as of `RealBroker`.

    Raises:
        SurroundingsError: it cannot be had or started.
    """
    broker = RealBroker(release, **options)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def _listens(port: int) -> bool:
    """Whether anybody takes connections; spares a client the trouble of being refused."""
    try:
        socket.create_connection((_HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _answers(bootstrap_servers: str) -> bool:
    """Whether a broker answers there; a connection alone comes too early."""
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=bootstrap_servers,
            request_timeout_ms=_ATTEMPT_MS,
            bootstrap_timeout_ms=_ATTEMPT_MS,
        )
    except (KafkaError, ValueError):
        return False
    try:
        return bool(admin.describe_cluster().get("brokers"))
    except KafkaError:
        return False
    finally:
        admin.close()


def send_signal(pid: int | None, number: int) -> None:
    """Send a signal to a process that may be gone."""
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _check_free(port: int) -> None:
    """A broker on that port would answer for ours."""
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        raise SurroundingsError(
            f"port {port} cannot be listened on: {error.strerror}; choose another, or 0"
        ) from error


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as server:
        return int(server.getsockname()[1])
