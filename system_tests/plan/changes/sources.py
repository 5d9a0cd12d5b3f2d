"""Sources of a printed plan: numbers in its lines, and the sources once, at its end."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

_SOURCE: Final = re.compile(r" \[([^][]+)\]$")


def with_sources(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines in which a source at the end is a number, and then all sources by number.

    >>> list(with_sources(["do it [KIP-1]", "and this [KIP-2]", "again [KIP-1]"]))
    ['do it [1]', 'and this [2]', 'again [1]', '', 'sources:', '  [1] KIP-1', '  [2] KIP-2']
    """
    numbers: dict[str, int] = {}
    for line in lines:
        found = _SOURCE.search(line)
        if found is None:
            yield line
        else:
            number = numbers.setdefault(found[1], len(numbers) + 1)
            yield f"{line[: found.start()]} [{number}]"
    if numbers:
        yield ""
        yield "sources:"
        yield from (f"  [{number}] {source}" for source, number in numbers.items())
