"""What is known of a soak while it runs: windows, figures and findings, written as they occur."""

from collections.abc import Callable
from dataclasses import asdict

from system_tests.live import Members
from system_tests.soak.disturbances import now_ms
from system_tests.soak.findings import Figures, Finding, Trouble
from system_tests.soak.journal import Journal
from system_tests.soak.tally import Tally, Window


class RunningLog:
    """What is known of a soak so far.

    Args:
        tally: counts the reports of the members.
        journal: where events go.
        say: adds a line to the trace.
    """

    def __init__(self, tally: Tally, journal: Journal, say: Callable[[str], None]) -> None:
        self.figures = Figures()
        self.tally, self.journal = tally, journal
        self.kind, self.number = "start", 0
        self._say = say

    def begin(self, kind: str, number: int) -> None:
        """Note that a disturbance begins; what follows is attributed to it."""
        self.kind, self.number = kind, number
        self.figures.disturbances[kind] += 1

    def recovered(self, since_ms: float, good_ms: float | None) -> None:
        """Note that the group recovered, at `good_ms`, from what was done at `since_ms`."""
        seconds = max(0.0, (now_ms() if good_ms is None else good_ms) - since_ms) / 1000
        self.figures.note_recovery(self.kind, seconds)

    def recoveries_s(self) -> list[float]:
        """Return the recovery times of the current kind so far."""
        return list(self.figures.recoveries_s.get(self.kind, ()))

    def close(self, members: Members) -> Window:
        """Check what happened since the last settled group, and forget it."""
        self.tally.take(members.drain())
        ended_ms = dict(members.ended_ms)
        window = self.tally.close(
            owners={p: member.name for member in members.view.alive for p in member.owned},
            generation=members.view.generation or 0,
            ended_ms=ended_ms,
            now_ms=now_ms(),
        )
        members.forget(ended_ms)
        if self.number:
            self.figures.note_window(self.kind, window)
        for double in window.doubles:
            self.find(
                Trouble.OWNERS,
                f"partition {double.partition} had two owners, {double.first.member} and "
                f"{double.second.member}, for {double.overlap_ms:.0f} ms",
            )
        self.check_commits()
        return window

    def check_commits(self, *, at_end: bool = False) -> None:
        """Find offsets that are committed although no member has processed the records."""
        found = self.tally.committed_unprocessed(at_end=at_end)
        for partition, (first, committed) in found.items():
            self.find(
                Trouble.RECORDS,
                f"partition {partition} is committed up to {committed}, but no member has "
                f"processed offset {first}",
            )

    def calm(self, generations: int, *, most: int) -> None:
        """Note how many rebalances the group had while it was left alone; `most` are accepted."""
        if generations:
            self.journal.write("rebalances in calm", number=self.number, count=generations)
            self.figures.calm += generations
        if generations > most:
            self.find(Trouble.CALM, f"{generations} rebalances without a disturbance")

    def find(self, trouble: Trouble, sentence: str) -> None:
        """Add a finding to the figures, the journal and the trace."""
        finding = Finding(
            trouble=trouble,
            at_s=round(self.journal.at_s, 1),
            disturbance=self.number,
            sentence=sentence,
        )
        self.figures.note_finding(finding)
        self.journal.write("finding", kind=self.kind, **asdict(finding))
        self._say(f"FINDING, {trouble}: {sentence}")
