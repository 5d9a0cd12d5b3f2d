"""docs/wire.md: the layouts of both blobs, Kafka's and native, from the two tables."""

from encoding.kafka.compiled import array_of
from encoding.kafka.schema import KAFKA_VERSIONS, KINDS, STRUCTURES, Field, rows_of
from encoding.native.body import MAX_KEYS
from encoding.native.schema import (
    EMULATED_VERSIONS,
    MAGIC,
    MAX_SUBTOPOLOGIES,
    MAX_TASKS,
    MAX_TEXT_BYTES,
    NATIVE_KINDS,
    NATIVE_VERSIONS,
    READABLE_SINCE,
    NativeField,
)
from probing import NEWEST_KAFKA, find_release

_TYPES = (
    ("`int8`, `int32`, `int64`", "signed, big-endian"),
    ("`uuid`", "16 bytes, most significant half first"),
    ("`bytes`", "`int32` length, then UTF-8; not nullable"),
    ("`string`", "`int16` length, then UTF-8; a negative length is null"),
    (
        "`java_utf`",
        "unsigned 16-bit length, then *modified* UTF-8: NUL is `c0 80`, surrogates go one by one",
    ),
    ("`utf16`", "`int32` count of UTF-16 units, then two bytes each; 0 is null"),
    ("`[]name`", "`int32` count, then that many structures `name`"),
)

_INTRODUCTION = {
    "subscription": "The metadata of a member for the group leader (`SubscriptionInfo`).",
    "assignment": "The answer of the group leader to one member (`AssignmentInfo`)."
    " Rows marked * are equal for all members.",
}

_TOP = f"""# The bytes, field by field

To list the fields of a subscription or assignment with their bytes:

```sh
assignor decode --kind subscription --hex 0000006300000063
```

Versions 1 to {max(KAFKA_VERSIONS)} are Kafka's. They equal the bytes of Kafka Streams 0.10.0 to
{find_release(NEWEST_KAFKA).series}: big-endian, without framing, without checksum. Every reader
ignores bytes behind the last field of a version; a [trailer](#trailer) uses this. Versions
{max(KAFKA_VERSIONS) + 1} to 100 stay free for Kafka. Versions from 101 on are
[native](#native-versions). An x marks the versions that have a field.

`python -m docs.generate` writes this page from `encoding/kafka/schema.py` and
`encoding/native/schema.py`.

## Types

| type | bytes |
| --- | --- |"""

_SINCE = ", ".join(f"v{version}: {since}" for version, since in READABLE_SINCE.items())

_NATIVE_TOP = f"""
## Native versions

A native blob has an `int32` used version, an `int32` latest supported (or commonly supported)
version, then one msgpack map with integer keys. The header equals Kafka's, so that a JVM leader
probes as usual (KIP-268).

- Keys are only added and never reused. A field that changes its type gets another key.
- A value equal to its default is not written. nil counts as missing.
- Values do not nest: nil, bool, integer, text or bytes. A structure is bytes in a layout of the
  table below.
- Key 0 is `readable_since` ({_SINCE}).
  A reader whose latest native version is at least that value reads the body and skips unknown keys.
  Any other reader reads only the two numbers. An *assignment* that cannot be read is an error.
- Version 101 is released. 102, a *next* version, and 103, an *incompatible* one, exist for tests.

| type | msgpack value |
| --- | --- |"""

_NATIVE_TYPES = (
    ("`int32`, `int64`, `count`, `uint32`", "integer; `count` is 0 to 2147483647"),
    ("`bool`", "true or false"),
    ("`text`", "UTF-8, not empty"),
    ("`bytes`, `bytes8`", "bytes; exactly 8 of them"),
    ("`int64_bytes`", "a signed integer as 8 bytes, big-endian"),
    ("`uuid`", "16 bytes, most significant half first"),
    ("`sizes`", "varint size, varint repeats - 1, for each run of subtopologies of equal size"),
    (
        "`words`",
        "byte 0, then varints; or a width from 1 to 8, then that many bytes each, big-endian",
    ),
    ("`numbers`", "ascending: `words` of the gap before each; or byte 9, then a bitmap"),
    ("`tasks`", "block of `numbers` in the numbering of `sizes`, then `task_rows` of the others"),
    (
        "`offset_sums`",
        "block of `tasks`, block of a bitmap of those that run, zig-zag `words` of the other sums",
    ),
    ("`task_rows`", "block of zig-zag varints, subtopology and partition by task; then `names`"),
    ("`names`", "nothing if no task has one, else a text for each task, empty for none"),
    ("`offset_rows`", "block of `task_rows`, then a zig-zag varint sum for each"),
    ("`texts`", "texts"),
    ("`texts_by_name`", "text name, text value, repeated"),
    ("`counts_by_name`", "text name, varint, repeated"),
    ("`ranges_by_name`", "text name, varint lowest, varint highest, repeated"),
    ("`partitions`", "text topic, block of varints: gap before a range, its length; repeated"),
    (
        "`subtopology_rows`",
        (
            "block of topic names, ascending; then for each subtopology seven lists of varints"
            " (length first): versions, sources, sinks, (repartition topic, partitions),"
            " changelogs, co-partition groups, (changelog, retention in ms); a topic is its place"
            " among the names"
        ),
    ),
    ("`reached_rows`", "8 bytes form, varint epoch, varint version; repeated, forms ascend"),
    ("`fingerprints`", "8 bytes, repeated"),
)

_LIMITS = f"""
A *varint* is LEB128 of at most 64 bits. A *block* is a varint length and that many bytes. A text
within bytes is a varint length and UTF-8. Bitmaps begin at the lowest bit. The number of a task is
its position in (subtopology, partition) order. Writers choose the smaller of two codings (and words
of one width also if 16 or more of them are at most a quarter larger). Readers accept both.

Before they allocate memory, readers reject more than {MAX_KEYS} keys, a repeated key, a key that is
not an integer, arrays, extension types, texts of more than {MAX_TEXT_BYTES} bytes, more than
{MAX_SUBTOPOLOGIES} subtopologies or {MAX_TASKS} tasks in `sizes`, and any count that exceeds the
remaining bytes. A bit stands for at most one task, so a byte of input needs at most a few hundred
bytes of memory; time is linear."""

_TRAILER = f"""
## Trailer

A native member that writes version 11 or lower appends a trailer directly behind Kafka's fields:

| bytes | meaning |
| --- | --- |
| `{MAGIC.hex()}` | magic; read as a length or count of Kafka, it would be negative |
| `int32` | length of the native blob |
| native blob | header and body as above: its version and the latest one that the writer reads |

JVM members ignore the trailer. A native reader takes offset sums, tags, endpoint and error code
from it (in assignments: error code and next rebalance), so that a low version loses nothing. It
takes the process id and the tasks of an assignment from Kafka's fields. Other bytes behind the
fields, and a trailer that cannot be read, are ignored, as Kafka ignores them. If the body of a
trailer is for later readers only, a reader learns only its two versions.

With a trailer, the latest supported version in Kafka's fields is at most 11, because a JVM leader
may answer in any version up to the one that all members advertise."""


def render() -> str:
    """Return the whole page."""
    lines = [_TOP, *(f"| {name} | {meaning} |" for name, meaning in _TYPES)]
    for kind, rows in KINDS.items():
        lines += ["", f"## {kind.capitalize()}", "", _INTRODUCTION[kind], ""]
        lines += _field_table(rows)
        lines += ["", f"### Structures of the {kind}"]
        for name in _structures(rows):
            lines += ["", f"`{name}`", ""]
            lines += _structure_table(STRUCTURES[name])
    lines += ["", "## Versions with equal layouts", ""]
    lines += [f"- {kind}: {_equal_versions(rows)}" for kind, rows in KINDS.items()]
    lines += _native()
    return "\n".join(lines) + "\n"


def _native() -> list[str]:
    lines = [_NATIVE_TOP, *(f"| {name} | {meaning} |" for name, meaning in _NATIVE_TYPES), _LIMITS]
    for kind, rows in NATIVE_KINDS.items():
        lines += ["", f"### Native {kind}", "", *_native_table(rows)]
    return [*lines, _TRAILER]


def _native_table(rows: tuple[NativeField, ...]) -> list[str]:
    versions = (*NATIVE_VERSIONS, *EMULATED_VERSIONS)
    lines = [
        f"| key | field | type | default | {' | '.join(f'v{v}' for v in versions)} | meaning |",
        f"| --- | --- | --- | --- | {' | '.join('---' for _ in versions)} | --- |",
    ]
    for row in rows:
        marks = " | ".join("x" if row.is_in(version) else " " for version in versions)
        default = _default(row)
        cells = f"{row.key} | `{row.name}` | `{row.type}` | {default} | {marks} | {row.meaning}"
        lines.append(f"| {cells} |")
    return lines


def _default(row: NativeField) -> str:
    if row.key == 0:
        return "the used version"
    if row.default is None or row.default in ((), {}, b""):
        return "none"
    return str(row.default).lower() if isinstance(row.default, bool) else str(row.default)


def _field_table(rows: tuple[Field, ...]) -> list[str]:
    versions = " | ".join(f"v{version}" for version in KAFKA_VERSIONS)
    lines = [
        f"| field | type | {versions} | meaning |",
        f"| --- | --- | {' | '.join('---' for _ in KAFKA_VERSIONS)} | --- |",
    ]
    for row in rows:
        marks = " | ".join("x" if row.is_in(version) else " " for version in KAFKA_VERSIONS)
        star = "*" if row.shared else ""
        lines.append(f"| `{row.name}`{star} | `{row.type}` | {marks} | {row.meaning} |")
    return lines


def _structure_table(rows: tuple[Field, ...]) -> list[str]:
    lines = ["| field | type | since | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{r.name}` | `{r.type}` | v{r.since} | {r.meaning} |" for r in rows]
    return lines


def _structures(rows: tuple[Field, ...]) -> list[str]:
    """Return the structures that these rows use, in the order of first use."""
    found: list[str] = []
    for row in rows:
        name = array_of(row.type)
        if name is not None and name not in found:
            found += [
                name,
                *(inner for inner in _structures(STRUCTURES[name]) if inner not in found),
            ]
    return found


def _equal_versions(rows: tuple[Field, ...]) -> str:
    groups: dict[object, list[int]] = {}
    for version in KAFKA_VERSIONS:
        used = _structures(rows)
        layout = (
            tuple(rows_of(rows, version)),
            tuple(tuple(rows_of(STRUCTURES[name], version)) for name in used),
        )
        groups.setdefault(layout, []).append(version)
    equal = [group for group in groups.values() if len(group) > 1]
    return "; ".join(", ".join(f"v{version}" for version in group) for group in equal)
