"""A Kafka Streams member that counts records by key: a Python process with a JVM.

`python -m system_tests.live.streams_move.member` reads a `JvmMemberConfig` from its standard input,
starts the JVM, and waits for a line before it starts the member, so that all members of a group
start at once. It reports changes of its tasks, restored changelogs and failures as lines of JSON.
The next line, or the end of its standard input, closes it.
"""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from system_tests.errors import EnvironmentFailureError
from system_tests.json_lines import read_line
from system_tests.live.members.process import JsonLines, ask_kernel_to_end_with_parent
from system_tests.real import implement, java_causes, java_exception, start_jvm, streams_jars

STORE = "counts"
_LOOK_S = 0.05
_EXIT_ENVIRONMENT = 3
_STREAMS = "org.apache.kafka.streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmMemberConfig:
    """The configuration of a member: one line of JSON on its standard input.

    Attributes:
        name: client id.
        release: exact release of Kafka Streams.
        topic: that is read; its records have text keys.
        protocol: `group.protocol`, classic or streams.
        static: whether its name is its `group.instance.id`.
    """

    name: str
    release: str
    bootstrap_servers: str
    application_id: str
    topic: str
    protocol: str
    state_dir: str
    session_timeout_ms: int
    heartbeat_ms: int
    static: bool = False


class _Lines(JsonLines):
    """Reports with the time at which they were made; all processes have the same clock."""

    def report(self, event: str, **values: object) -> None:
        """Write one event."""
        self.answer(event=event, at_ms=monotonic() * 1000, **values)


def main() -> int:
    """Run the member until the second line."""
    lines = _Lines()
    config = read_line(JvmMemberConfig, sys.stdin.readline())
    ask_kernel_to_end_with_parent()
    try:
        classes = start_jvm(streams_jars(config.release))
    except EnvironmentFailureError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_ENVIRONMENT
    streams = _streams(classes, config, lines)
    lines.report("ready")
    if not sys.stdin.readline():
        return 0
    stopping = threading.Event()
    watcher = threading.Thread(target=_watch_tasks, args=(streams, lines, stopping), daemon=True)
    streams.start()
    watcher.start()
    sys.stdin.readline()
    stopping.set()
    watcher.join()
    streams.close()
    lines.report("tasks", active=[])
    return 0


def _streams(classes: Any, config: JvmMemberConfig, lines: _Lines) -> Any:
    """Return the `KafkaStreams` with its listeners, not started."""
    serdes = classes("org.apache.kafka.common.serialization.Serdes")
    counted = (
        classes(f"{_STREAMS}.kstream.Materialized")
        .as_(classes(f"{_STREAMS}.state.Stores").inMemoryKeyValueStore(STORE))
        .withKeySerde(serdes.String())
        .withValueSerde(serdes.Long())
    )
    builder = classes(f"{_STREAMS}.StreamsBuilder")()
    builder.stream(config.topic).groupByKey().count(counted)
    streams = classes(f"{_STREAMS}.KafkaStreams")(builder.build(), _properties(classes, config))
    streams.setGlobalStateRestoreListener(
        implement(
            classes(f"{_STREAMS}.processor.StateRestoreListener"),
            onRestoreStart=lambda *_: None,
            onBatchRestored=lambda *_: None,
            onRestoreEnd=lambda partition, _, total: lines.report(
                "restored", partition=int(partition.partition()), records=int(total)
            ),
            onRestoreSuspended=lambda *_: None,
        )
    )
    handler = classes(f"{_STREAMS}.errors.StreamsUncaughtExceptionHandler")
    response = classes(f"{handler.class_.getName()}$StreamThreadExceptionResponse")

    def failed(error: Any) -> Any:
        lines.report("failed", why=java_causes(error))
        return response.SHUTDOWN_CLIENT

    streams.setUncaughtExceptionHandler(implement(handler, handle=failed))
    return streams


def _properties(classes: Any, config: JvmMemberConfig) -> Any:
    text = "org.apache.kafka.common.serialization.Serdes$StringSerde"
    properties = classes("java.util.Properties")()
    for name, value in {
        "application.id": config.application_id,
        "client.id": config.name,
        "bootstrap.servers": config.bootstrap_servers,
        "group.protocol": config.protocol,
        "state.dir": config.state_dir,
        "default.key.serde": text,
        "default.value.serde": text,
        "auto.offset.reset": "earliest",
        "commit.interval.ms": "100",
        "statestore.cache.max.bytes": "0",
        "metadata.max.age.ms": "2000",
        "session.timeout.ms": str(config.session_timeout_ms),
        "heartbeat.interval.ms": str(config.heartbeat_ms),
        **({"group.instance.id": config.name} if config.static else {}),
    }.items():
        properties.put(name, value)
    return properties


def _watch_tasks(streams: Any, lines: _Lines, stopping: threading.Event) -> None:
    """Report the active tasks whenever they change; Kafka Streams has no callback."""
    last: object = None
    while not stopping.wait(_LOOK_S):
        active: list[str] = []
        with suppress(java_exception()):  # it stopped running, and so has no tasks
            for thread in streams.metadataForLocalThreads():
                active += [str(task.taskId()) for task in thread.activeTasks()]
        if sorted(active) != last:
            last = sorted(active)
            lines.report("tasks", active=last)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # threads of the JVM would delay a normal exit
