"""docs/wire.md: the byte layout of both blobs, printed from the schema table."""

from encoding.plan import array_of
from encoding.schema import KAFKA_VERSIONS, KINDS, STRUCTURES, Field, rows_of

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
    "subscription": "What a member tells the group leader (`SubscriptionInfo`).",
    "assignment": "What the group leader answers one member (`AssignmentInfo`)."
    " Rows marked * are equal for all members.",
}

_TOP = """# The wire, field by field

Printed by `python -m docs.generate` from `encoding/schema.py`. Byte-exact with Kafka Streams 0.10.0
to 4.3, without framing, without checksum, big-endian. Bytes behind the last field of a version are
ignored by every reader. An x marks the versions that carry a field.

## Types

| type | bytes |
| --- | --- |"""


def render() -> str:
    """The whole page."""
    lines = [_TOP, *(f"| {name} | {meaning} |" for name, meaning in _TYPES)]
    for kind, rows in KINDS.items():
        lines += ["", f"## {kind.capitalize()}", "", _INTRODUCTION[kind], ""]
        lines += _field_table(rows)
        lines += ["", f"### Structures of the {kind}"]
        for name in _structures(rows):
            lines += ["", f"`{name}`", ""]
            lines += _structure_table(STRUCTURES[name])
    lines += ["", "## Versions that differ only in the number", ""]
    lines += [f"- {kind}: {_equal_versions(rows)}" for kind, rows in KINDS.items()]
    return "\n".join(lines) + "\n"


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
    """Structures that these rows reach, in the order of first use."""
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
