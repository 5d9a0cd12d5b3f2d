"""The assignor of streams groups of a real broker.

`python -m system_tests.support.jvm.streams_groups RELEASE` reads lines `{"members": [{"member":
ID, "process": ID, "active": [TASK], "standby": [TASK], "offsets": {TASK: SUM}}], "subtopologies":
{ID: [TASKS, STATEFUL]}, "standbys": COUNT}` and answers each with `{"members": {ID: {"active":
[TASK], "standby": [TASK]}}}`, tasks sorted as text, or with `{"error": ...}`. Classes before 4.4
are not told offsets.
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
    r"(?P<member>[^{ ]+)=MemberAssignment[\[(]activeTasks=\{(?P<active>[^}]*)\}, "
    r"standbyTasks=\{(?P<standby>[^}]*)\}(?:, warmupTasks=\{\})?[\])]"
)
_PARTITIONS = re.compile(r"(?P<subtopology>\d+)=\[(?P<partitions>[\d, ]+)\]")
_PACKAGE = "org.apache.kafka.coordinator.group.streams.assignor"
_API_SINCE = find_release("4.4.0").order
_API = "org.apache.kafka.coordinator.group.api.streams.assignor"
"""The package of the interfaces from 4.4.0 on (KIP-1357)."""


def main() -> int:
    """Answer line by line until standard input ends."""
    lines = JsonLines()
    ask_kernel_to_end_with_parent()
    release = find_release(sys.argv[1])
    # A standby that cannot be placed is a warning for each task.
    classes = start_jvm(broker_jars(release.name), log_levels=[f"{_PACKAGE}=error"])
    group, api = (_group, _API) if release.order >= _API_SINCE else (_group_4_3, _PACKAGE)
    assignor = classes(f"{_PACKAGE}.StickyTaskAssignor")()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = assignor.assign(group(classes, asked), _topology(classes, api, asked))
        except java_exception() as error:
            lines.answer(error=str(error))
        else:
            lines.answer(members=_members(answer))
    return 0


def _group(classes: Callable[[str], Any], asked: Mapping[str, Any]) -> Any:
    empty, maps = classes("java.util.Optional").empty(), classes("java.util.HashMap")
    members = maps()
    for member in asked["members"]:
        state = classes(f"{_PACKAGE}.MemberMetadataAndStateImpl")(
            *(empty, empty, member["process"], maps()),
            *(_by_subtopology(classes, member[role]) for role in ("active", "standby")),
            *(maps(), _offsets(classes, member["offsets"]), maps()),
        )
        members.put(member["member"], state)
    none = classes("java.util.List").of()
    configs = classes(f"{_PACKAGE}.AssignmentConfigsImpl")(asked["standbys"], none)
    return classes(f"{_PACKAGE}.GroupSpecImpl")(members, configs)


def _offsets(classes: Callable[[str], Any], offsets: Mapping[str, int]) -> Any:
    found = classes("java.util.HashMap")()
    number, long = classes("java.lang.Integer"), classes("java.lang.Long")
    for task, offset in offsets.items():
        subtopology, _, partition = task.partition("_")
        if not found.containsKey(subtopology):
            found.put(subtopology, classes("java.util.HashMap")())
        found.get(subtopology).put(number(int(partition)), long(offset))
    return found


def _group_4_3(classes: Callable[[str], Any], asked: Mapping[str, Any]) -> Any:
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


def _topology(classes: Callable[[str], Any], api: str, asked: Mapping[str, Any]) -> Any:
    rows: Mapping[str, tuple[int, bool]] = asked["subtopologies"]
    names = classes("java.util.ArrayList")()
    for name in sorted(rows):
        names.add(name)
    return implement(
        classes(f"{api}.TopologyDescriber"),
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
