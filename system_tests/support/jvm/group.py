"""Kafka Streams processes that form a streams group (KIP-1071), in one JVM.

`python -m system_tests.support.jvm.group RELEASE` reads a line `{"bootstrap_servers": TEXT,
"counted": PARTITIONS, "copied": PARTITIONS, "settings": {NAME: TEXT}}`, makes the topics and the
settings of the group, and answers `{}`. Each further line, `{"start": [THREADS, ...]}` or
`{"close": PROCESS}`, is answered when the group is stable again: `{"members": [{"member": ID,
"process": ID, "active": [TASK], "standby": [TASK]}], "stateful": [SUBTOPOLOGY]}`, with the tasks
of the target assignment.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep
from typing import Any

from probing import find_release
from system_tests.errors import EnvironmentFailureError
from system_tests.live.members.process import JsonLines, ask_kernel_to_end_with_parent
from system_tests.real.jars import streams_jars
from system_tests.real.machine import java_exception, start_jvm

COUNTED, COPIED = "counted", "copied"
_GROUP = "streams-group"
_STREAMS = "org.apache.kafka.streams"
_ADMIN = "org.apache.kafka.clients.admin"
_SERDE = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_STABLE_S = 240.0
_LOOK_S = 0.3

_Classes = Callable[[str], Any]


def main() -> int:
    """Answer line by line until standard input ends."""
    lines = JsonLines()
    ask_kernel_to_end_with_parent()
    with tempfile.TemporaryDirectory() as folder:
        classes = start_jvm(streams_jars(find_release(sys.argv[1]).name), temporary=folder)
        setup = json.loads(sys.stdin.readline())
        processes = _Processes(classes, setup["bootstrap_servers"], folder)
        try:
            processes.prepare(setup)
            lines.answer()
            for line in sys.stdin:
                asked = json.loads(line)
                for threads in asked.get("start", ()):
                    processes.start(threads)
                if "close" in asked:
                    processes.close(asked["close"])
                lines.answer(**processes.stable_group())
        finally:
            processes.close_all()
    return 0


class _Processes:
    """The processes, by number, and an admin client."""

    def __init__(self, classes: _Classes, bootstrap_servers: str, folder: str) -> None:
        self._classes, self._folder, self._servers = classes, folder, bootstrap_servers
        settings = self._properties({"bootstrap.servers": bootstrap_servers})
        self._admin = classes(f"{_ADMIN}.Admin").create(settings)
        self._running: dict[int, tuple[Any, int]] = {}
        self._started = 0

    def prepare(self, setup: Mapping[str, Any]) -> None:
        """Make the topics and the settings of the group."""
        short, new_topic = self._classes("java.lang.Short"), self._classes(f"{_ADMIN}.NewTopic")
        topics = [new_topic(name, setup[name], short(1)) for name in (COUNTED, COPIED)]
        topics.append(new_topic("copies", 1, short(1)))
        self._admin.createTopics(self._classes("java.util.ArrayList")(topics)).all().get()
        kind = self._classes("org.apache.kafka.common.config.ConfigResource$Type").GROUP
        resource = self._classes("org.apache.kafka.common.config.ConfigResource")(kind, _GROUP)
        entry, change = (self._classes(f"{_ADMIN}.{n}") for n in ("ConfigEntry", "AlterConfigOp"))
        to_set = self._classes(f"{_ADMIN}.AlterConfigOp$OpType").SET
        changes = self._classes("java.util.HashMap")()
        rows = [change(entry(name, value), to_set) for name, value in setup["settings"].items()]
        changes.put(resource, self._classes("java.util.ArrayList")(rows))
        self._admin.incrementalAlterConfigs(changes).all().get()

    def start(self, threads: int) -> None:
        """Start a process, with a state directory of its own."""
        settings = {
            "application.id": _GROUP,
            "bootstrap.servers": self._servers,
            "default.key.serde": _SERDE,
            "default.value.serde": _SERDE,
            # Its default needs RocksDB, which is left out of the jars.
            "dsl.store.suppliers.class": (
                f"{_STREAMS}.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"
            ),
            "group.protocol": "streams",
            "num.stream.threads": str(threads),
            "state.dir": f"{self._folder}/{self._started}",
        }
        streams = self._classes(f"{_STREAMS}.KafkaStreams")(
            self._topology(), self._properties(settings)
        )
        self._running[self._started] = (streams, threads)
        self._started += 1
        streams.start()

    def close(self, number: int) -> None:
        """Stop a process; its members leave the group."""
        streams, _ = self._running.pop(number)
        streams.close()

    def close_all(self) -> None:
        """Stop everything."""
        for number in list(self._running):
            self.close(number)
        self._admin.close()

    def stable_group(self) -> dict[str, Any]:
        """The group, when all members have their tasks.

        Raises:
            EnvironmentFailureError: it is not stable in time.
        """
        wanted = sum(threads for _, threads in self._running.values())
        end = monotonic() + _STABLE_S
        seen = "not there"
        groups = self._classes("java.util.ArrayList")([_GROUP])
        while monotonic() < end:
            try:
                group = self._admin.describeStreamsGroups(groups).all().get().get(_GROUP)
            except java_exception() as error:
                seen = str(error)
            else:
                seen = f"{group.groupState()}, {group.members().size()} of {wanted} members"
                is_assigned = group.groupEpoch() == group.targetAssignmentEpoch()
                if is_assigned and seen == f"Stable, {wanted} of {wanted} members":
                    return _described(group)
            sleep(_LOOK_S)
        raise EnvironmentFailureError(f"the group is not stable after {_STABLE_S:.0f} s: {seen}")

    def _topology(self) -> Any:
        """One subtopology with state, and one without."""
        builder = self._classes(f"{_STREAMS}.StreamsBuilder")()
        builder.stream(COUNTED).groupByKey().count(
            self._classes(f"{_STREAMS}.kstream.Materialized").as_("counts")
        )
        builder.stream(COPIED).to("copies")
        return builder.build()

    def _properties(self, settings: Mapping[str, str]) -> Any:
        properties = self._classes("java.util.Properties")()
        for name, value in sorted(settings.items()):
            properties.put(name, value)
        return properties


def _described(group: Any) -> dict[str, Any]:
    members = [
        {
            "member": str(member.memberId()),
            "process": str(member.processId()),
            "active": _tasks(member.targetAssignment().activeTasks()),
            "standby": _tasks(member.targetAssignment().standbyTasks()),
        }
        for member in group.members()
    ]
    stateful = [
        str(part.subtopologyId())
        for part in group.subtopologies()
        if not part.stateChangelogTopics().isEmpty()
    ]
    return {"members": sorted(members, key=lambda row: row["member"]), "stateful": stateful}


def _tasks(given: Iterable[Any]) -> list[str]:
    return sorted(
        f"{part.subtopologyId()}_{number}" for part in given for number in part.partitions()
    )


if __name__ == "__main__":
    sys.exit(main())
