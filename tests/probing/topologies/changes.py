"""Changes of a topology for the exploration: the subtopologies of an old and of a new program.

A subtopology has source topics, changelogs and sinks; `r`, `rr` and so on are repartition topics.
Its content, which does not have the sinks, is its name: `r>counts` reads r and keeps counts.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A subtopology of a program."""

    sources: frozenset
    logs: frozenset = frozenset()
    sinks: frozenset = frozenset()

    @property
    def form(self):
        """Its content."""
        return f"{'+'.join(sorted(self.sources))}>{'+'.join(sorted(self.logs))}".encode()

    @property
    def topics(self):
        """Topics of which one task at a time may use a partition."""
        return self.sources | {f"{log}-changelog" for log in self.logs}


def part(sources, logs="", sinks=""):
    """A subtopology from names with spaces between them."""
    return Part(*(frozenset(names.split()) for names in (sources, logs, sinks)))


def is_repartition(topic):
    """Whether members write a topic, not the outside."""
    return topic in {"r", "rr"}


KEPT, LINES, COUNT = part("a"), part("lines", "", "r"), part("r", "counts")
PLAIN = {
    "add": ([KEPT], [KEPT, part("x")]),
    "remove": ([KEPT, part("x")], [KEPT]),
    "change": ([KEPT, part("c", "counts")], [KEPT, part("c", "counts totals")]),
    "rename": ([KEPT, part("q", "counts")], [KEPT, part("q", "totals")]),
    "merge": ([part("c", "counts"), part("x", "sums")], [part("c x", "counts sums")]),
    "split": ([part("c x", "counts sums")], [part("c", "counts"), part("x", "sums")]),
    "source added": ([part("c", "counts")], [part("c x", "counts")]),
    "source removed": ([part("c x", "counts")], [part("c", "counts")]),
}
ONE_TOPIC = {
    "removed": ([LINES, COUNT], [part("lines", "counts")]),
    "added": ([part("lines", "counts")], [LINES, COUNT]),
    "renamed": ([LINES, COUNT], [part("lines", "", "rr"), part("rr", "counts")]),
    "moved": (
        [LINES, COUNT, part("x", "sums")],
        [part("lines", "counts"), part("x", "", "r"), part("r", "sums")],
    ),
    "moved to a new source": (
        [LINES, COUNT],
        [part("lines", "counts"), part("x", "", "r"), part("r", "sums")],
    ),
    "branch added": ([part("lines", "counts")], [part("lines", "counts", "r"), part("r", "sums")]),
    "branch removed": (
        [part("lines", "counts", "r"), part("r", "sums")],
        [part("lines", "counts")],
    ),
    "store moved before": (
        [part("x", "", "r"), COUNT],
        [part("x", "counts", "r"), part("r", "sums")],
    ),
    "store added behind": ([LINES, COUNT], [LINES, part("r", "counts totals")]),
    "feeder added": ([LINES, COUNT], [LINES, COUNT, part("x", "", "r")]),
}
TWO = [LINES, part("r", "mid", "rr"), part("rr", "counts")]
TWO_TOPICS = {
    "first removed": (
        [LINES, part("r", "", "rr"), part("rr", "counts")],
        [part("lines", "", "rr"), part("rr", "counts")],
    ),
    "second removed": (TWO, [LINES, part("r", "mid counts")]),
    "both removed": (TWO, [part("lines", "mid counts")]),
    "both added": ([part("lines", "mid counts")], TWO),
    "join loses one": (
        [LINES, part("x", "", "rr"), part("r rr", "counts")],
        [part("x", "", "rr"), part("lines rr", "counts")],
    ),
    "topics merged": (
        [part("lines", "", "r rr"), COUNT, part("rr", "sums")],
        [LINES, part("r", "counts sums")],
    ),
    "second branch added": ([LINES, COUNT], [part("lines", "", "r rr"), COUNT, part("rr", "sums")]),
    "branch before a chain removed": (
        [part("lines", "mid", "r"), part("r", "", "rr"), part("rr")],
        [part("lines", "mid"), part("x", "sums", "rr"), part("rr", "counts")],
    ),
    "swapped": (
        [LINES, COUNT, part("x", "", "rr"), part("rr", "sums")],
        [part("lines", "", "rr"), part("rr", "counts"), part("x", "", "r"), part("r", "sums")],
    ),
}
CHANGES = {**PLAIN, **ONE_TOPIC, **TWO_TOPICS}
"""Name -> the subtopologies of the old program and of the new one."""
CHAINED = {
    *("removed", "added", "renamed", "moved", "moved to a new source", "store moved before"),
    *("second removed", "both removed", "both added", "join loses one", "topics merged", "swapped"),
    "branch before a chain removed",
}
"""Changes in which subtopologies that a repartition topic joins change together."""
