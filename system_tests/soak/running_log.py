"""The books: windows are closed, findings noted and told, events written, as the soak goes on."""

from collections.abc import Callable
from dataclasses import asdict

from system_tests.live import Crew
from system_tests.soak.disturbances import now_ms
from system_tests.soak.findings import Figures, Finding, Trouble
from system_tests.soak.journal import Journal
from system_tests.soak.tally import Tally, Window


class Books:
    """What is known of a soak so far.

    Args:
        tally: what members say is counted there.
        journal: where events go.
        say: puts a line into the trace.
    """

    def __init__(self, tally: Tally, journal: Journal, say: Callable[[str], None]) -> None:
        self.figures = Figures()
        self.tally, self.journal = tally, journal
        self.kind, self.number = "start", 0
        self._say = say

    def begin(self, kind: str, number: int) -> None:
        """The next disturbance begins: all that follows is its doing."""
        self.kind, self.number = kind, number
        self.figures.disturbances[kind] += 1

    def recovered(self, since_ms: float, good_ms: float | None) -> None:
        """The group has recovered, at `good_ms`, from what was done at `since_ms`."""
        seconds = max(0.0, (now_ms() if good_ms is None else good_ms) - since_ms) / 1000
        self.figures.note_recovery(self.kind, seconds)

    def recoveries_s(self) -> list[float]:
        """Return the times of this kind so far."""
        return list(self.figures.recoveries_s.get(self.kind, ()))

    def close(self, crew: Crew) -> Window:
        """Judge what happened since the last settled group, and forget it."""
        self.tally.take(crew.drain())
        ended_ms = dict(crew.ended_ms)
        window = self.tally.close(
            owners={p: member.name for member in crew.group.alive for p in member.owned},
            generation=crew.group.generation or 0,
            ended_ms=ended_ms,
            now_ms=now_ms(),
        )
        crew.forget(ended_ms)
        if self.number:
            self.figures.note_window(self.kind, window)
        for double in window.doubles:
            self.find(
                Trouble.OWNERS,
                f"partition {double.partition} had two owners, {double.first.member} and "
                f"{double.second.member}, for {double.overlap_ms:.0f} ms",
            )
        self.look_at_commits()
        return window

    def look_at_commits(self, *, at_end: bool = False) -> None:
        """Nothing may be committed that nobody has processed."""
        found = self.tally.committed_unprocessed(at_end=at_end)
        for partition, (first, committed) in found.items():
            self.find(
                Trouble.RECORDS,
                f"partition {partition} is committed up to {committed}, but nobody has processed "
                f"offset {first}",
            )

    def calm(self, generations: int, *, most: int) -> None:
        """The group was left alone, and had this many rebalances of its own."""
        if generations:
            self.journal.write("rebalances in calm", number=self.number, count=generations)
            self.figures.calm += generations
        if generations > most:
            self.find(Trouble.CALM, f"{generations} rebalances although nothing was done")

    def find(self, trouble: Trouble, sentence: str) -> None:
        """Something went wrong: count it, write it, tell it."""
        finding = Finding(
            trouble=trouble,
            at_s=round(self.journal.at_s, 1),
            disturbance=self.number,
            sentence=sentence,
        )
        self.figures.note_finding(finding)
        self.journal.write("finding", kind=self.kind, **asdict(finding))
        self._say(f"FINDING, {trouble}: {sentence}")
