"""The assignor of streams groups of a real broker.

`python -m system_tests.support.jvm.streams_groups RELEASE` reads lines `{"members": [{"member":
ID, "process": ID, "active": [TASK], "standby": [TASK]}], "subtopologies": {ID: [TASKS, STATEFUL]},
"standbys": COUNT}` and answers each with `{"members": {ID: {"active": [TASK], "standby":
[TASK]}}}`, tasks sorted as text, or with `{"error": ...}`.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from probing import find_release
from system_tests.live.members.process import JsonLines, ask_kernel_to_end_with_parent
from system_tests.real.jars import broker_jars
from system_tests.real.machine import implement, java_exception, start_jvm

_MEMBER = re.compile(
    r"(?P<member>[^{ ]+)=MemberAssignment\[activeTasks=\{(?P<active>[^}]*)\}, "
    r"standbyTasks=\{(?P<standby>[^}]*)\}, warmupTasks=\{\}\]"
)
_PARTITIONS = re.compile(r"(?P<subtopology>\d+)=\[(?P<partitions>[\d, ]+)\]")
_PACKAGE = "org.apache.kafka.coordinator.group.streams.assignor"


def main() -> int:
    """Answer line by line until standard input ends."""
    lines = JsonLines()
    ask_kernel_to_end_with_parent()
    # A standby that cannot be placed is a warning for each task.
    classes = start_jvm(
        broker_jars(find_release(sys.argv[1]).name), log_levels=[f"{_PACKAGE}=error"]
    )
    assignor = classes(f"{_PACKAGE}.StickyTaskAssignor")()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = assignor.assign(_group(classes, asked), _topology(classes, asked))
        except java_exception() as error:
            lines.answer(error=str(error))
        else:
            lines.answer(members=_members(answer))
    return 0


def _group(classes: Callable[[str], Any], asked: Mapping[str, Any]) -> Any:
    empty, maps = classes("java.util.Optional").empty(), classes("java.util.HashMap")
    specs = maps()
    for member in asked["members"]:
        spec = classes(f"{_PACKAGE}.AssignmentMemberSpec")(
            *(empty, empty, _by_subtopology(classes, member["active"])),
            *(_by_subtopology(classes, member["standby"]), maps(), member["process"]),
            *(maps(), maps(), maps()),
        )
        specs.put(member["member"], spec)
    settings = maps()
    settings.put("num.standby.replicas", str(asked["standbys"]))
    return classes(f"{_PACKAGE}.GroupSpecImpl")(specs, settings)


def _by_subtopology(classes: Callable[[str], Any], tasks: Sequence[str]) -> Any:
    if not tasks:
        return classes("java.util.Map").of()
    partitions: dict[str, list[int]] = {}
    for task in tasks:
        subtopology, _, partition = task.partition("_")
        partitions.setdefault(subtopology, []).append(int(partition))
    found, number = classes("java.util.HashMap")(), classes("java.lang.Integer")
    for subtopology, numbers in partitions.items():
        found.put(subtopology, classes("java.util.HashSet")([number(part) for part in numbers]))
    return found


def _topology(classes: Callable[[str], Any], asked: Mapping[str, Any]) -> Any:
    rows: Mapping[str, tuple[int, bool]] = asked["subtopologies"]
    names = classes("java.util.ArrayList")()
    for name in sorted(rows):
        names.add(name)
    return implement(
        classes(f"{_PACKAGE}.TopologyDescriber"),
        subtopologies=lambda: names,
        maxNumInputPartitions=lambda name: rows[str(name)][0],
        isStateful=lambda name: rows[str(name)][1],
    )


def _members(answer: Any) -> dict[str, dict[str, list[str]]]:
    # One text for all: a call of Java for each task of 10,000 members takes half a minute.
    return {
        row["member"]: {role: _tasks(row[role]) for role in ("active", "standby")}
        for row in sorted(_MEMBER.finditer(str(answer.members())), key=itemgetter("member"))
    }


def _tasks(text: str) -> list[str]:
    return sorted(
        f"{part['subtopology']}_{number}"
        for part in _PARTITIONS.finditer(text)
        for number in part["partitions"].split(", ")
    )


if __name__ == "__main__":
    sys.exit(main())
