"""A real Kafka Streams member: a Python process with a JVM, controlled by lines of JSON.

`python -m system_tests.support.jvm.member` reads a `RealConfig` from its standard input and then
one command per line: "stop", or "hosts" for its view of the hosts of each partition. It reports
every change of `KafkaStreams.State` and of its tasks, and why a stream thread failed. It ends at
the end of its standard input.
"""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from system_tests.errors import EnvironmentFailureError
from system_tests.json_lines import read_line
from system_tests.live import events
from system_tests.live.members.process import EXIT_FAILED, Reporter, ask_kernel_to_end_with_parent
from system_tests.real import implement, java_causes, java_exception, start_jvm
from system_tests.real.jars import streams_jars
from system_tests.support.jvm.topologies import build_topology
from system_tests.support.word_count import RealConfig

_LOOK_S = 0.1
_STREAMS = "org.apache.kafka.streams"
_LOGGED = (
    f"{_STREAMS}.processor.internals.StreamsPartitionAssignor=info",
    f"{_STREAMS}.processor.internals.assignment=info",
    "org.apache.kafka.clients.consumer.internals.AbstractCoordinator=info",
)
_EXIT_ENVIRONMENT = 3


def main() -> int:
    """Run the member until the command to stop."""
    report = Reporter()
    config = read_line(RealConfig, sys.stdin.readline())
    ask_kernel_to_end_with_parent()
    try:
        jars = streams_jars(config.release, on_disk=config.on_disk)
        Path(config.state_dir).mkdir(parents=True, exist_ok=True)
        classes = start_jvm(jars, log_levels=_LOGGED, temporary=config.state_dir)
    except EnvironmentFailureError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_ENVIRONMENT
    try:
        streams = build_streams(classes, config, report)
    except java_exception() as error:
        report(events.MemberFailed(why=java_causes(error)))
        return EXIT_FAILED
    stopping = threading.Event()
    watcher = threading.Thread(target=_watch_tasks, args=(streams, report, stopping), daemon=True)
    streams.start()
    watcher.start()
    for line in sys.stdin:
        if line.strip() == "hosts":
            report(events.HostsReported(hosts=_hosts(streams)))
        else:
            break
    stopping.set()
    watcher.join()
    _close(classes, config, streams)
    return 0


def build_streams(classes: Any, config: RealConfig, report: Reporter) -> Any:
    """Build the `KafkaStreams` of the release, with its listeners."""
    streams = classes(f"{_STREAMS}.KafkaStreams")(
        build_topology(classes, config), _properties(classes, config)
    )
    streams.setStateListener(
        implement(
            classes(f"{_STREAMS}.KafkaStreams$StateListener"),
            onChange=lambda new, _: report(events.StateChanged(state=str(new))),
        )
    )
    streams.setUncaughtExceptionHandler(_handler(classes, config, report))
    return streams


def _properties(classes: Any, config: RealConfig) -> Any:
    text = "org.apache.kafka.common.serialization.Serdes$StringSerde"
    settings = {
        "application.id": config.application_id,
        "client.id": config.name,
        "bootstrap.servers": config.bootstrap_servers,
        "state.dir": config.state_dir,
        "default.key.serde": text,
        "default.value.serde": text,
        "commit.interval.ms": "100",
        "cache.max.bytes.buffering": "0",
        "statestore.cache.max.bytes": "0",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": str(config.session_timeout_ms),
        "heartbeat.interval.ms": str(config.heartbeat_interval_ms),
        "num.standby.replicas": str(config.num_standby_replicas),
        "internal.leave.group.on.close": str(config.leaves_group).lower(),
        "metadata.max.age.ms": "2000",
        **({"upgrade.from": config.upgrade_from} if config.upgrade_from else {}),
        **({"application.server": config.endpoint} if config.endpoint else {}),
        **config.settings,
    }
    properties = classes("java.util.Properties")()
    for name, value in sorted(settings.items()):
        properties.put(name, value)
    return properties


def _handler(classes: Any, config: RealConfig, report: Reporter) -> Any:
    """The handler of thread failures: since 2.8 it returns a response, before it only reports."""
    try:
        modern = classes(f"{_STREAMS}.errors.StreamsUncaughtExceptionHandler")
    except TypeError:
        return implement(
            classes("java.lang.Thread$UncaughtExceptionHandler"),
            uncaughtException=lambda _, error: report(events.MemberFailed(why=java_causes(error))),
        )
    responses = classes(
        f"{_STREAMS}.errors.StreamsUncaughtExceptionHandler$StreamThreadExceptionResponse"
    )

    def handle(error: Any) -> Any:
        report(events.MemberFailed(why=java_causes(error)))
        return getattr(responses, config.when_failed)

    return implement(modern, handle=handle)


def _watch_tasks(streams: Any, report: Reporter, stopping: threading.Event) -> None:
    """Report the tasks of its threads whenever they change; Kafka Streams has no callback."""
    threads = getattr(streams, "metadataForLocalThreads", None) or streams.localThreadsMetadata
    last: object = None
    while not stopping.wait(_LOOK_S):
        active, standby = [], []
        with suppress(java_exception()):  # it stopped running, and so has no tasks
            for thread in threads():
                active += [str(task.taskId()) for task in thread.activeTasks()]
                standby += [str(task.taskId()) for task in thread.standbyTasks()]
        now = events.TasksChanged(
            active_tasks=tuple(sorted(active)), standby_tasks=tuple(sorted(standby))
        )
        if now != last:
            last = now
            report(now)


def _close(classes: Any, config: RealConfig, streams: Any) -> None:
    """Stop; 4.2 replaced `internal.leave.group.on.close` by an option, also of static members."""
    try:
        options = classes(f"{_STREAMS}.CloseOptions")
    except TypeError:
        streams.close()
        return
    how = classes(f"{_STREAMS}.CloseOptions$GroupMembershipOperation")
    leaves = config.leaves_group and "group.instance.id" not in config.settings
    streams.close(
        options.groupMembershipOperation(how.LEAVE_GROUP if leaves else how.REMAIN_IN_GROUP)
    )


def _hosts(streams: Any) -> dict[str, dict[str, tuple[str, ...]]]:
    """Its routing of queries: endpoint -> active and standby partitions."""
    all_clients = getattr(streams, "metadataForAllStreamsClients", None) or streams.allMetadata
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for client in all_clients():
        standby = getattr(client, "standbyTopicPartitions", None)
        found[f"{client.hostInfo().host()}:{client.hostInfo().port()}"] = {
            "active": tuple(sorted(str(partition) for partition in client.topicPartitions())),
            "standby": tuple(sorted(str(partition) for partition in standby())) if standby else (),
        }
    return found


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # threads of the JVM would delay a normal exit
