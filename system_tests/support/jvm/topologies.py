"""Topologies of JVM members, by the name that `RealConfig.topology` gives.

Each reads the topics of its `Workload` (`system_tests.support.claims.workloads`) or, as `words`,
that of the word count, and writes its results to the topic of `counts_topic`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from system_tests.real import implement
from system_tests.support.word_count import (
    POISON,
    STORE,
    RealConfig,
    counts_topic,
    left_topic,
    right_topic,
    words_topic,
)

_STREAMS = "org.apache.kafka.streams"
_EPOCH_MS = 1_600_000_000_000  # of "1": real times, as buffers of suppress() write them
_LIMIT_MS = 1000
_Classes = Callable[[str], Any]


def build_topology(classes: _Classes, config: RealConfig) -> Any:
    """Return the Java topology of a member, with the classes of its release."""
    return TOPOLOGIES[config.topology](classes, config)


def _words(classes: _Classes, config: RealConfig) -> Any:
    """Count words: two subtopologies with a repartition topic between them."""
    by_word = implement(classes(f"{_STREAMS}.kstream.KeyValueMapper"), apply=_word)
    builder = classes(f"{_STREAMS}.StreamsBuilder")()
    words = builder.stream(words_topic(config.application_id))
    counts = words.selectKey(by_word).groupByKey().count(_counted(classes, config))
    counts.toStream().to(counts_topic(config.application_id), _numbers(classes))
    return builder.build()


def _foreign_key(classes: _Classes, config: RealConfig) -> Any:
    """Join a table by foreign keys: `KEY -> FOREIGN:TEXT` with `FOREIGN -> TEXT`."""
    builder = classes(f"{_STREAMS}.StreamsBuilder")()
    left = builder.table(left_topic(config.application_id))
    right = builder.table(right_topic(config.application_id))
    joined = left.join(
        right,
        implement(classes("java.util.function.Function"), apply=_before_colon),
        implement(classes(f"{_STREAMS}.kstream.ValueJoiner"), apply=_both),
    )
    joined.toStream().to(counts_topic(config.application_id))
    return builder.build()


def _table(classes: _Classes, config: RealConfig) -> Any:
    """Count the rows of a table by the first part of their values, `GROUP:TEXT`."""
    pair = classes(f"{_STREAMS}.KeyValue").pair

    def by_group(key: Any, value: Any) -> Any:
        return pair(classes("java.lang.String")(_before_colon(value)), key)

    builder = classes(f"{_STREAMS}.StreamsBuilder")()
    rows = builder.table(left_topic(config.application_id))
    mapper = implement(classes(f"{_STREAMS}.kstream.KeyValueMapper"), apply=by_group)
    counts = rows.groupBy(mapper).count(_counted(classes, config))
    counts.toStream().to(counts_topic(config.application_id), _numbers(classes))
    return builder.build()


def _suppress(classes: _Classes, config: RealConfig) -> Any:
    """Suppress updates of a table, `KEY -> TIME`, until the next time of another key."""
    stored = classes(f"{_STREAMS}.kstream.Materialized").as_(classes("java.lang.String")(STORE))
    return _suppressed(classes, config, stored)


def _suppress_bare(classes: _Classes, config: RealConfig) -> Any:
    """Suppress updates of a table without a name, which has no store in 2.2 alone."""
    return _suppressed(classes, config)


def _suppressed(classes: _Classes, config: RealConfig, *stored: Any) -> Any:
    suppressed = classes(f"{_STREAMS}.kstream.Suppressed")
    buffer = classes(f"{_STREAMS}.kstream.Suppressed$BufferConfig").unbounded()
    limit = classes("java.time.Duration").ofMillis(_LIMIT_MS)
    builder = classes(f"{_STREAMS}.StreamsBuilder")()
    table = builder.table(left_topic(config.application_id), _timed(classes), *stored)
    table = table.suppress(suppressed.untilTimeLimit(limit, buffer))
    table.toStream().to(counts_topic(config.application_id))
    return builder.build()


def _left_join(classes: _Classes, config: RealConfig) -> Any:
    """Join two streams of `KEY -> TIME` with the windows of 3.1, which need a third store."""
    windows = classes(f"{_STREAMS}.kstream.JoinWindows")
    limit = classes("java.time.Duration").ofMillis(_LIMIT_MS // 2)
    try:
        window = windows.ofTimeDifferenceAndGrace(limit, limit)
    except AttributeError:
        window = windows.of(limit).grace(limit)
    return _joined(classes, config, window)


def _left_join_of(classes: _Classes, config: RealConfig) -> Any:
    """Join two streams of `KEY -> TIME` with the windows that all releases have."""
    limit = classes("java.time.Duration").ofMillis(_LIMIT_MS // 2)
    window = classes(f"{_STREAMS}.kstream.JoinWindows").of(limit).grace(limit)
    return _joined(classes, config, window)


def _joined(classes: _Classes, config: RealConfig, window: Any) -> Any:
    builder = classes(f"{_STREAMS}.StreamsBuilder")()
    left, right = (
        builder.stream(topic(config.application_id), _timed(classes))
        for topic in (left_topic, right_topic)
    )
    joiner = implement(classes(f"{_STREAMS}.kstream.ValueJoiner"), apply=_both)
    left.leftJoin(right, joiner, window).to(counts_topic(config.application_id))
    return builder.build()


def _timed(classes: _Classes) -> Any:
    """Read records whose value is their time."""
    extractor = classes(f"{_STREAMS}.processor.TimestampExtractor")
    return classes(f"{_STREAMS}.kstream.Consumed").with_(implement(extractor, extract=_time))


def _counted(classes: _Classes, config: RealConfig) -> Any:
    """Describe the store; on disk it is the DSL's default one, from 2.3 on with timestamps."""
    serdes = classes("org.apache.kafka.common.serialization.Serdes")
    in_memory = classes(f"{_STREAMS}.state.Stores").inMemoryKeyValueStore
    store = classes("java.lang.String")(STORE) if config.on_disk else in_memory(STORE)
    materialized = classes(f"{_STREAMS}.kstream.Materialized").as_(store)
    return materialized.withKeySerde(serdes.String()).withValueSerde(serdes.Long())


def _numbers(classes: _Classes) -> Any:
    serdes = classes("org.apache.kafka.common.serialization.Serdes")
    return classes(f"{_STREAMS}.kstream.Produced").with_(serdes.String(), serdes.Long())


# Called from Java.


def _word(_: Any, value: Any) -> Any:
    """Return the key by which records are grouped."""
    if str(value) == POISON:
        raise ValueError("a word that cannot be counted")
    return value


def _before_colon(value: Any) -> str:
    return str(value).partition(":")[0]


def _time(record: Any, _: Any) -> int:
    return _EPOCH_MS + _LIMIT_MS * int(str(record.value()))


def _both(left: Any, right: Any) -> str:
    return f"{left}/{right}"


TOPOLOGIES: Final[Mapping[str, Callable[[_Classes, RealConfig], Any]]] = {
    "words": _words,
    "foreign-key": _foreign_key,
    "table": _table,
    "suppress": _suppress,
    "suppress-bare": _suppress_bare,
    "left-join": _left_join,
    "left-join-of": _left_join_of,
}
"""By the name that a configuration gives."""
