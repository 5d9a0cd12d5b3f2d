"""Subtopologies, reached versions and fingerprints as bytes: what members tell of their topology.

``subtopology_rows`` is a block of texts (topic names, ascending), then varints for each
subtopology, as lists that begin with their length: versions; source topics; sink topics;
(repartition topic, partitions, 0 for not configured); changelogs; co-partition groups, each a list;
(changelog, retention in ms). A topic is its place among the texts. ``reached_rows`` is, for each
form, 8 bytes, varint epoch, varint version; forms ascend. ``fingerprints`` is 8 bytes each.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from encoding.native.schema import MAX_SUBTOPOLOGIES
from encoding.native.task_columns import encode_text, take_text
from encoding.primitives import Cursor, WireFault, block, encode_varint, encode_varints

FINGERPRINT_BYTES = 8
_MOST_NUMBER = 2**63 - 1


class SubtopologyRow(NamedTuple):
    """A subtopology that a member can run; all names are full topic names.

    ``versions`` are those of the topology that contain it, from 1, ascending. ``partitions`` of a
    repartition topic are 0 if they are not configured.
    """

    versions: tuple[int, ...]
    source_topics: tuple[str, ...]
    sink_topics: tuple[str, ...] = ()
    repartition_topics: tuple[tuple[str, int], ...] = ()
    changelog_topics: tuple[str, ...] = ()
    copartition_groups: tuple[tuple[str, ...], ...] = ()
    changelog_retention_ms: tuple[tuple[str, int], ...] = ()


class ReachedRow(NamedTuple):
    """A form of a subtopology (8 bytes), and the version that it has reached in an epoch."""

    form: bytes
    epoch: int
    version: int


_COLUMNS = ("number", "topic", "topic", "pair", "topic", "topics", "pair")
"""What the lists of a `SubtopologyRow` consist of; a pair is a topic and a number."""


def encode_subtopology_rows(rows: Sequence[SubtopologyRow]) -> bytes:
    """Return the bytes of some subtopologies.

    Raises:
        WireFault: a row without a version or a source, or a number that does not fit.
    """
    names = sorted({name for row in rows for name in _names(row)})
    place = {name: number for number, name in enumerate(names)}
    write: dict[str, Callable[[Any], tuple[int, ...]]] = {
        "number": lambda number: (number,),
        "topic": lambda name: (place[name],),
        "pair": lambda pair: (place[pair[0]], pair[1]),
        "topics": lambda group: (len(group), *(place[name] for name in group)),
    }
    numbers: list[int] = []
    for row in rows:
        if not row.versions or not row.source_topics:
            raise WireFault("a subtopology has at least one version and one source topic")
        for column, items in zip(_COLUMNS, row, strict=True):
            numbers.append(len(items))
            for item in items:
                numbers.extend(write[column](item))
    if any(type(number) is not int or not 0 <= number <= _MOST_NUMBER for number in numbers):
        raise WireFault("versions, partitions and times are integers from 0 to 2**63 - 1")
    return block(b"".join(map(encode_text, names))) + encode_varints(numbers)


def decode_subtopology_rows(data: bytes) -> tuple[SubtopologyRow, ...]:
    """Return the subtopologies.

    Raises:
        WireFault: anything that no writer writes; at most 16,384 rows are read.
    """
    cursor = Cursor(data)
    names = _texts_in(cursor.block())

    def number() -> int:
        value = cursor.varint()
        if value > _MOST_NUMBER:
            raise WireFault(f"{value} is larger than {_MOST_NUMBER}")
        return value

    def topic() -> str:
        found = cursor.varint()
        if found >= len(names):
            raise WireFault(f"topic {found} of {len(names)}")
        return names[found]

    def several(read: Callable[[], Any]) -> tuple[Any, ...]:
        count = cursor.varint()
        if count > cursor.left:
            raise WireFault(f"{count} entries in {cursor.left} bytes")
        return tuple(read() for _ in range(count))

    read: dict[str, Callable[[], Any]] = {
        "number": number,
        "topic": topic,
        "pair": lambda: (topic(), number()),
        "topics": lambda: several(topic),
    }
    rows: list[SubtopologyRow] = []
    while cursor.left:
        row = SubtopologyRow(*(several(read[column]) for column in _COLUMNS))
        if not row.versions or not row.source_topics or len(rows) >= MAX_SUBTOPOLOGIES:
            raise WireFault("a subtopology without a version or a source topic, or too many")
        rows.append(row)
    return tuple(rows)


def _texts_in(data: bytes) -> list[str]:
    texts = Cursor(data)
    names: list[str] = []
    while texts.left:
        names.append(take_text(texts))
    if names != sorted(set(names)):
        raise WireFault("topic names do not ascend")
    return names


def _names(row: SubtopologyRow) -> Iterable[str]:
    yield from (*row.source_topics, *row.sink_topics, *row.changelog_topics)
    yield from (name for name, _ in (*row.repartition_topics, *row.changelog_retention_ms))
    yield from (name for group in row.copartition_groups for name in group)


def encode_reached_rows(rows: Iterable[ReachedRow]) -> bytes:
    """Return the bytes of a memory of reached versions.

    Raises:
        WireFault: a form that is not 8 bytes or occurs twice, or a number below 0.
    """
    ordered = sorted(rows)
    if len({row.form for row in ordered}) != len(ordered):
        raise WireFault("a form occurs twice")
    parts = []
    for form, epoch, version in ordered:
        if min(epoch, version) < 0 or max(epoch, version) > _MOST_NUMBER:
            raise WireFault(f"epoch {epoch}, version {version}: give 0 to 2**63 - 1")
        parts.append(_eight(form) + encode_varint(epoch) + encode_varint(version))
    return b"".join(parts)


def decode_reached_rows(data: bytes) -> tuple[ReachedRow, ...]:
    """Return the memory of reached versions.

    Raises:
        WireFault: cut off, a form that does not ascend, or a number above 2**63 - 1.
    """
    cursor = Cursor(data)
    rows: list[ReachedRow] = []
    while cursor.left:
        row = ReachedRow(cursor.take(FINGERPRINT_BYTES), cursor.varint(), cursor.varint())
        if max(row.epoch, row.version) > _MOST_NUMBER or (rows and row.form <= rows[-1].form):
            raise WireFault("forms do not ascend, or a number is above 2**63 - 1")
        rows.append(row)
    return tuple(rows)


def encode_fingerprints(forms: Iterable[bytes]) -> bytes:
    """Return the bytes of fingerprints, 8 each, in their order.

    Raises:
        WireFault: one that is not 8 bytes.
    """
    return b"".join(map(_eight, forms))


def decode_fingerprints(data: bytes) -> tuple[bytes, ...]:
    """Return fingerprints, in their order.

    Raises:
        WireFault: the bytes are no multiple of 8, or there are more than 16,384.
    """
    count, rest = divmod(len(data), FINGERPRINT_BYTES)
    if rest or count > MAX_SUBTOPOLOGIES:
        raise WireFault(
            f"{len(data)} bytes are no list of at most {MAX_SUBTOPOLOGIES} fingerprints"
        )
    return tuple(data[8 * number : 8 * number + 8] for number in range(count))


def _eight(form: Any) -> bytes:
    if not isinstance(form, bytes) or len(form) != FINGERPRINT_BYTES:
        raise WireFault("a fingerprint takes exactly 8 bytes")
    return form
