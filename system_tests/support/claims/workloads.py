"""What an experiment writes to the topics of a topology, and the results that are right.

Records come in batches, numbered from 1. Each batch changes the result of every key, so that
results that are right after a batch show that all members processed it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from system_tests.support.counts import COUNT
from system_tests.support.word_count import left_topic, right_topic, words_topic

_WORDS: Final = 8
_FOREIGN: Final = 8
_GROUPS: Final = 3
_KEYS: Final = 8  # every partition has one of each kind
Records = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The input and the results of one topology.

    Attributes:
        batch: number of a batch -> records by topic, in the order in which they are written; the
            topic as a function of the application id.
        results: number of batches that were written -> the last result of each key, as text.
        read_value: bytes of a result -> text.
    """

    batch: Callable[[int], tuple[tuple[Callable[[str], str], Records], ...]]
    results: Callable[[int], Records]
    read_value: Callable[[bytes], str]

    @property
    def topics(self) -> tuple[Callable[[str], str], ...]:
        """The input topics."""
        return tuple(dict.fromkeys(topic for topic, _ in self.batch(1)))


def _number(value: bytes) -> str:
    return str(COUNT.unpack(value)[0])


def _text(value: bytes) -> str:
    """Return a value as text that can be printed, as a wrong one may be anything."""
    return ascii(value.decode("latin-1"))[1:-1]


def _rows(number: int) -> Records:
    """Each batch updates all rows within their groups, and adds two rows to each group."""
    return {f"row{at}": f"group{at % _GROUPS}:{number}" for at in range(2 * _GROUPS * number)}


def _times(number: int) -> tuple[tuple[Callable[[str], str], Records], ...]:
    """Each batch goes on by two times; records of one time are suppressed until the next one.

    So the last records of a batch are the first results of the next one, after a restart as well.
    """
    times = range(1 if number == 1 else 2 * number, 2 * number + 2)
    return tuple(
        (left_topic, {f"{'late' if time % 2 else 'early'}{at}": f"{time}" for at in range(_KEYS)})
        for time in times
    )


def _both_tables(number: int) -> tuple[tuple[Callable[[str], str], Records], ...]:
    """The first batch fills both tables; then even ones update the right one, odd ones the left."""
    rows = {f"row{at}": f"key{at % _FOREIGN}:{number}" for at in range(2 * _FOREIGN)}
    keys = {f"key{at}": f"{number}" for at in range(_FOREIGN)}
    tables = ((left_topic, rows), (right_topic, keys))
    return tables if number == 1 else (tables[number % 2 == 0],)


def _last(batches: int, topic: Callable[[str], str]) -> int:
    """Return the last batch that wrote to a table."""
    numbers = range(1, batches + 1)
    return max(each for each in numbers if topic in dict(_both_tables(each)))


WORKLOADS: Final[Mapping[str, Workload]] = {
    "words": Workload(
        batch=lambda _: ((words_topic, {f"{at}": f"word{at}" for at in range(_WORDS)}),),
        results=lambda batches: {f"word{at}": f"{batches}" for at in range(_WORDS)},
        read_value=_number,
    ),
    "foreign-key": Workload(
        batch=_both_tables,
        results=lambda batches: {
            f"row{at}": f"key{at % _FOREIGN}:{_last(batches, left_topic)}"
            f"/{_last(batches, right_topic)}"
            for at in range(2 * _FOREIGN)
        },
        read_value=bytes.decode,
    ),
    "table": Workload(
        batch=lambda number: ((left_topic, _rows(number)),),
        results=lambda batches: {f"group{at}": f"{2 * batches}" for at in range(_GROUPS)},
        read_value=_number,
    ),
    **dict.fromkeys(
        ("suppress", "suppress-bare"),
        Workload(
            batch=_times,
            results=lambda batches: {
                f"{name}{at}": f"{2 * batches - behind}"
                for name, behind in (("early", 0), ("late", 1))
                for at in range(_KEYS)
            },
            read_value=_text,
        ),
    ),
    **dict.fromkeys(
        ("left-join", "left-join-of"),
        Workload(
            batch=lambda number: tuple(
                (topic, {f"key{at}": f"{number}" for at in range(_KEYS)})
                for topic in (left_topic, right_topic)
            ),
            results=lambda batches: {f"key{at}": f"{batches}/{batches}" for at in range(_KEYS)},
            read_value=bytes.decode,
        ),
    ),
}
"""By the name of the topology (`system_tests.support.jvm.topologies`)."""
