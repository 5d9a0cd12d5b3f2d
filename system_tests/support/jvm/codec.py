"""The codecs of a real release: decodes bytes, builds values, and encodes both.

`python -m system_tests.support.jvm.codec RELEASE` reads lines of four kinds and answers each with
one line, or with `{"error": "CLASS: MESSAGE <- CAUSE"}`:

- `{"kind": "subscription" | "assignment", "hex": ...}`: the release's class decodes the bytes and
  encodes the value; `{"hex": ...}`. Equal bytes prove both directions.
- the same with `"read": true`: `{"fields": ...}`, what its getters return, as in the golden files.
- `{"kind": ..., "version": ..., "latest_supported": ..., "fields": ...}`: its constructor builds
  the value, and it is encoded; `{"hex": ...}`. Releases from 3.5 on have these constructors.
- `{"constant": true}`: `{"version": ...}`, the newest version that the release writes.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probing import find_release
from system_tests.live.members.process import JsonLines, ask_kernel_to_end_with_parent
from system_tests.real import java_bytes, java_exception, start_jvm
from system_tests.real.jars import streams_jars

_STREAMS = "org.apache.kafka.streams"
_PACKAGE = f"{_STREAMS}.processor.internals.assignment"
_CLASSES = {"subscription": "SubscriptionInfo", "assignment": "AssignmentInfo"}
_RUNNING = -2
"""The offset sum of a task that runs on the member."""


def main() -> int:
    """Answer line by line until standard input ends."""
    lines = JsonLines()
    ask_kernel_to_end_with_parent()
    codec = _Codec(start_jvm(streams_jars(find_release(sys.argv[1]).name)))
    for line in sys.stdin:
        try:
            answer = codec.answer(json.loads(line))
        except java_exception() as error:
            lines.answer(error=_error(error))
        else:
            lines.answer(**answer)
    return 0


class _Codec:
    """The two classes of the release that runs in this process."""

    def __init__(self, classes: Callable[[str], Any]) -> None:
        self._class = classes
        self._codecs = {kind: classes(f"{_PACKAGE}.{name}") for kind, name in _CLASSES.items()}

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one line; raises what the classes raise."""
        if "constant" in asked:
            constants = self._class(f"{_PACKAGE}.StreamsAssignmentProtocolVersions")
            return {"version": int(constants.LATEST_SUPPORTED_VERSION)}
        if "fields" in asked:
            return {"hex": _hex(self._built(asked).encode())}
        data = self._class("java.nio.ByteBuffer").wrap(java_bytes(bytes.fromhex(asked["hex"])))
        value = self._codecs[asked["kind"]].decode(data)
        if not asked.get("read"):
            return {"hex": _hex(value.encode())}
        fields = _subscription if asked["kind"] == "subscription" else _assignment
        return {"fields": fields(value)}

    def _built(self, asked: Mapping[str, Any]) -> Any:
        numbers, fields = (asked["version"], asked["latest_supported"]), asked["fields"]
        build = self._codecs[asked["kind"]]
        if asked["kind"] == "assignment":
            value = build(
                *numbers,
                self._class("java.util.ArrayList")(
                    [self._task(row) for row in fields["active_tasks"]]
                ),
                self._map(
                    (self._task(row), self._partitions(row[3])) for row in fields["standby_tasks"]
                ),
                *(
                    self._map(
                        (self._class(f"{_STREAMS}.state.HostInfo")(host, port), self._partitions(t))
                        for host, port, t in fields[name]
                    )
                    for name in ("partitions_by_host", "standby_partitions_by_host")
                ),
                fields["error_code"],
            )
            value.setNextRebalanceTime(fields["next_rebalance_ms"])
            return value
        uuid = self._class("java.util.UUID").fromString(fields["process_id"])
        process = self._class(f"{_STREAMS}.processor.assignment.ProcessId")(uuid)
        number = self._class("java.lang.Long")
        sums = ((self._task(row), number(row[3])) for row in fields["task_offset_sums"])
        strings = self._class("java.lang.String")
        tags = [(strings(k), strings(v)) for k, v in fields["client_tags"].items()]
        return build(
            *(*numbers, process, fields["user_endpoint"], self._map(sums)),
            *(fields["unique_field"], fields["error_code"], self._map(tags)),
        )

    def _map(self, rows: Any) -> Any:
        found = self._class("java.util.LinkedHashMap")()
        for key, value in rows:
            found.put(key, value)
        return found

    def _task(self, row: Sequence[Any]) -> Any:
        return self._class(f"{_STREAMS}.processor.TaskId")(*row[:3])

    def _partitions(self, rows: Sequence[Sequence[Any]]) -> Any:
        build = self._class("org.apache.kafka.common.TopicPartition")
        return self._class("java.util.LinkedHashSet")([build(topic, part) for topic, part in rows])


def _subscription(value: Any) -> dict[str, Any]:
    """Return what the getters say, as in the golden files: every list sorted."""
    sums = value.taskOffsetSums()
    return {
        "version": int(value.version()),
        "latest_supported": int(value.latestSupportedVersion()),
        "process_id": str(value.processId().id()),
        "user_endpoint": _text(value.userEndPoint()),
        "prev_tasks": _tasks(value.prevTasks()),
        "standby_tasks": _tasks(value.standbyTasks()),
        "task_offset_sums": _sorted([*_task(t), int(sums.get(t))] for t in sums),
        # The class has no getter of it; only versions from 8 on carry it.
        "unique_field": _private(value, "uniqueField"),
        "error_code": int(value.errorCode()),
        "client_tags": {
            _text(key): _text(value.clientTags().get(key)) for key in _keys(value.clientTags())
        },
    }


def _assignment(value: Any) -> dict[str, Any]:
    """Return what the getters say; the order and repeats of active tasks are kept."""
    standby = value.standbyTasks()
    return {
        "version": int(value.version()),
        "commonly_supported": int(value.commonlySupportedVersion()),
        "active_tasks": [_task(task) for task in value.activeTasks()],
        "standby_tasks": _sorted([*_task(t), _pairs(standby.get(t))] for t in standby),
        "partitions_by_host": _hosts(value.partitionsByHost()),
        "standby_partitions_by_host": _hosts(value.standbyPartitionByHost()),
        "error_code": int(value.errCode()),
        "next_rebalance_ms": int(value.nextRebalanceMs()),
    }


def _hosts(rows: Any) -> list[Any]:
    return _sorted([_text(h.host()), int(h.port()), _pairs(rows.get(h))] for h in rows or ())


def _pairs(rows: Any) -> list[Any]:
    return _sorted([_text(row.topic()), int(row.partition())] for row in rows)


def _tasks(rows: Any) -> list[Any]:
    return _sorted(map(_task, rows))


def _task(task: Any) -> list[Any]:
    return [int(task.subtopology()), int(task.partition()), _text(task.topologyName())]


def _sorted(rows: Any) -> list[Any]:
    """Return rows in the order of the golden files: null before every text."""
    return sorted(rows, key=lambda row: [(cell is not None, cell) for cell in row])


def _keys(rows: Any) -> list[Any]:
    return sorted(rows or (), key=str)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    try:
        return str(value)
    except UnicodeDecodeError:  # JPype cannot convert half of a surrogate pair
        units = b"".join(int(unit).to_bytes(2, "big") for unit in value.chars().toArray())
        return units.decode("utf-16-be", "surrogatepass")


def _private(value: Any, name: str) -> int:
    data = value.getClass().getDeclaredField("data")
    data.setAccessible(True)
    return int(getattr(data.get(value), name)())


def _error(error: Any) -> str:
    """Return the classes and messages of an exception and of its causes."""
    found: list[str] = []
    while error is not None:
        found.append(f"{error.getClass().getName()}: {error.getMessage()}")
        error = error.getCause()
    return " <- ".join(found).replace(": None", ": null")


def _hex(buffer: Any) -> str:
    buffer.rewind()
    array = bytes(buffer.array())
    start = int(buffer.arrayOffset())
    return array[start : start + int(buffer.remaining())].hex()


if __name__ == "__main__":
    sys.exit(main())
