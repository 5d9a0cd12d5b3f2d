"""Hypothesis strategies for blobs in Kafka's layouts, generated from the schema.

`wire_rows` draws a value for every row of a version by its wire type, so new rows are covered
automatically. `subscriptions` and `assignments` turn such rows into values. The strategies of
native layouts are in `native_strategies`.
"""

from uuid import UUID

from hypothesis import strategies as st

from encoding import (
    Assignment,
    PartitionsByHost,
    PartitionsByTask,
    Subscription,
    TaskId,
    TaskOffsetSums,
)
from encoding.kafka.schema import ASSIGNMENT, KAFKA_VERSIONS, STRUCTURES, SUBSCRIPTION, rows_of

versions = st.sampled_from(KAFKA_VERSIONS)

_small = st.integers(0, 5)
_int32 = _small | st.integers(-(2**31), 2**31 - 1)
_int64 = st.sampled_from((-2, -3, 0)) | st.integers(-(2**63), 2**63 - 1)
_plain = st.text("abcxyz-.0123456789", max_size=12)
_any_text = _plain | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# Java's writers keep unpaired surrogates in these two types. hypothesis draws single surrogates
# only, because two adjacent ones are read back as one character.
_any_units = _any_text | st.text(st.characters(categories=["Cs"]), min_size=1, max_size=1)

LEAVES = {
    "int8": st.integers(-128, 127),
    "int32": _int32,
    "int64": _int64,
    "uuid": st.uuids() | st.just(UUID(int=0)),
    "bytes": _any_text,
    "string": st.none() | _any_text,
    "java_utf": _any_units,
    "utf16": st.none() | _any_units,
}


def wire_value(type_, version):
    """A value of a wire type: leaves as they are, arrays as lists of dicts by field name."""
    if type_ in LEAVES:
        return LEAVES[type_]
    structure = {
        field.name: wire_value(field.type, version)
        for field in rows_of(STRUCTURES[type_[2:]], version)
    }
    return st.lists(st.fixed_dictionaries(structure), max_size=6)


def wire_rows(rows, version):
    """One drawn value per row of the version, by field name."""
    return st.fixed_dictionaries(
        {row.name: wire_value(row.type, version) for row in rows_of(rows, version)}
    )


@st.composite
def subscriptions(draw, version_of=versions):
    version = draw(version_of)
    row = draw(wire_rows(SUBSCRIPTION, version))
    row["version"] = version
    if "latest_supported_version" in row:
        row["latest_supported_version"] = draw(st.integers(version, 2**31 - 1))
    row["task_offset_sums"] = _sums(row)
    row["client_tags"] = {tag["key"]: tag["value"] for tag in row.pop("client_tags", ())}
    return Subscription(**row)


@st.composite
def assignments(draw, version_of=versions):
    version = draw(version_of)
    row = draw(wire_rows(ASSIGNMENT, version))
    row["version"] = version
    topics = [entry["topic"] for entry in row.pop("topics", ())] or ["t"]
    row["active_tasks"] = tuple(_task(task) for task in row["active_tasks"])
    row["standby_tasks"] = PartitionsByTask(
        {_task(task): _served(task["partitions"], topics) for task in row["standby_tasks"]}
    )
    for name in ("partitions_by_host", "standby_partitions_by_host"):
        row[name] = PartitionsByHost(
            {
                (host["host"], host["port"]): _served(host["partitions"], topics)
                for host in row.get(name, ())
            }
        )
    return Assignment(**row)


def _sums(row):
    sums = {}
    for task in row.pop("prev_tasks", ()):
        sums[_task(task)] = -2
    for task in row.pop("standby_tasks", ()):
        sums[_task(task)] = -3
    for task in row.pop("task_offset_sums", ()):
        for part in task.get("partitions", (task,)):
            sums[_task(task | part)] = part["offset_sum"]
    return TaskOffsetSums.from_mapping(sums)


def _task(row):
    return TaskId(row["subtopology"], row["partition"], row.get("topology_name") or None)


def _served(partitions, topics):
    return [
        (part.get("topic", topics[part.get("index", 0) % len(topics)]), part["partition"])
        for part in partitions
    ]
