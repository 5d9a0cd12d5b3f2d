"""The soak itself: start the group, disturb it until the time is over, judge it while it lives."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from random import Random
from threading import Event
from time import monotonic

from probing import find_release
from system_tests.live import (
    Crew,
    MemberDiedError,
    NotInTimeError,
    Screen,
    Stage,
    WordProducer,
    unsettled_reason,
)
from system_tests.soak.disturbances import now_ms, strike
from system_tests.soak.environment import Ground, open_ground
from system_tests.soak.findings import SoakOutcome, Trouble, rebalances_of
from system_tests.soak.gauges import Gauges
from system_tests.soak.journal import Journal
from system_tests.soak.options import NATIVE, WARM_UP_S, SoakOptions
from system_tests.soak.running_log import Books
from system_tests.soak.schedule import Disturbance, Kind, draw_schedule
from system_tests.soak.tally import Stall, Tally, Written

_GRACE_S = 1.0
_BEHIND_S = 2.0
_BEHIND_MIN = 50
_CALM_REBALANCES = 2
_ATTEMPTS = 3


class EndedEarly(Exception):
    """Somebody asked for the verdict so far."""


class Stuck(Exception):
    """It makes no sense to go on; the message says why."""


class Soak:
    """One soak, from the first process to the last.

    Args:
        options: the numbers.
        screen: where the trace goes.
        journal: where events go.
        stopping: set it to have the verdict early.
    """

    def __init__(
        self, options: SoakOptions, *, screen: Screen, journal: Journal, stopping: Event
    ) -> None:
        self.options = options
        self.dice = Random(options.seed)  # noqa: S311 an experiment is repeatable, not secret
        self.stage = _stage(NATIVE)
        self._screen, self._journal, self._stopping = screen, journal, stopping
        self._expected = set(options.names[: options.members])
        self._good_ms: float | None = None
        self._finishing = False

    def run(self) -> SoakOutcome:
        """Run it; call this from the main thread.

        Raises:
            SurroundingsError: no broker, or it did not come back.
        """
        options = self.options
        with ExitStack() as stack:
            self.ground: Ground = stack.enter_context(open_ground(options))
            self.crew = Crew(
                options.names,
                bootstrap_servers=self.ground.world.bootstrap_servers,
                group_id=self.ground.world.group_id,
                topic=self.ground.world.topic,
                options=options.as_live(),
                screen=self._screen,
                dice=self.dice,
                stop_s=options.settle_timeout_s,
            )
            stack.callback(self.crew.end, grace_s=_GRACE_S)
            self._written = Written(options.partitions)
            tally = Tally(
                self._written,
                partitions=options.partitions,
                zombie_ms=float(options.session_timeout_ms),
            )
            self._books = Books(tally, self._journal, self.crew.say)
            self._producer = WordProducer.of(
                self.ground.world, options.as_live(), tell=self._written.note
            )
            stack.callback(self._producer.close)
            self._gauges = Gauges(
                self._processes,
                every_s=options.sample_s,
                tell=self._tell_gauges,
                warm_up_s=WARM_UP_S,
            )
            stack.callback(self._gauges.stop)
            return self._live()

    # Steps

    def _live(self) -> SoakOutcome:
        began_s = monotonic()
        early: str | None = None
        try:
            self._start_group()
            began_s = monotonic()
            self._gauges.start()
            self._disturb_until(began_s + 60 * self.options.minutes)
        except EndedEarly:
            early = "it was interrupted"
        except Stuck as error:
            early = str(error)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
            early = "the group did not start"
        seconds = monotonic() - began_s
        self._gauges.stop()
        unsettled = self._finish()
        return SoakOutcome(
            figures=self._books.figures,
            coverages=self._books.tally.coverages(),
            growths=self._gauges.growths(),
            unjudged=self._gauges.unjudged(),
            gauge_failures=self._gauges.failures,
            unsettled=unsettled,
            early=early,
            seconds=seconds,
            journal_bytes=self._journal.bytes,
            broker_bytes=None if self.ground.real is None else self.ground.real.disk_bytes(),
        )

    def _start_group(self) -> None:
        self._journal.write("began", options=asdict(self.options))
        self._producer.start()
        since_ms = now_ms()
        # The first to join leads. Those that are never killed come last, so that others lead first.
        long_lived = self.options.long_lived
        for name in sorted(self._expected, key=lambda name: (name in long_lived, name)):
            self.crew.start(name, self.stage)
            self._wait(partial(self._absent, name), self.options.settle_timeout_s)
        self.settle(since_ms=since_ms)
        self._books.close(self.crew)

    def _disturb_until(self, deadline_s: float) -> None:
        for disturbance in draw_schedule(self.options):
            if monotonic() >= deadline_s:
                return
            self._disturb(disturbance)
            self._be_calm(disturbance.calm_s)

    def _disturb(self, disturbance: Disturbance) -> None:
        if disturbance.release is not None:
            self.stage = _stage(disturbance.release)
        if disturbance.victim is not None:
            expect = (
                self._expected.discard if disturbance.kind is Kind.SHRINK else self._expected.add
            )
            expect(disturbance.victim)
        books = self._books
        books.begin(disturbance.kind.value, disturbance.number)
        self._journal.write("disturbance", **asdict(disturbance))
        before = len(books.recoveries_s())
        try:
            strike(self, disturbance)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
            self.settle(since_ms=now_ms())
        window = books.close(self.crew)
        self._journal.write(
            "settled",
            number=disturbance.number,
            kind=disturbance.kind,
            recoveries_s=books.recoveries_s()[before:],
            generation=self.crew.group.generation,
            rebalances=rebalances_of(window),
            moves=window.moves,
            longest_wait_ms=round(window.longest_wait_ms),
        )

    def _be_calm(self, seconds: float) -> None:
        """Leave the group alone: what it does now, it does by itself, and that must end."""
        if self._producer.failed:
            raise Stuck("records cannot be written any more")
        before = self.crew.group.generation or 0
        try:
            self.let_pass(seconds)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
            self.settle(since_ms=now_ms())
            return
        self._books.calm((self.crew.group.generation or 0) - before, most=_CALM_REBALANCES)

    def _finish(self) -> str | None:
        """Write no more, wait until all is processed, look at the group, stop it; why unsettled."""
        self._finishing = True
        crew, limit_s = self.crew, self.options.settle_timeout_s
        self._producer.stop()
        if self._producer.failed:
            self._books.find(
                Trouble.RECORDS, f"a record could not be written: {self._producer.failed}"
            )
        crew.say(f"no more records; {sum(self._written.ends().values())} are written")
        unsettled: str | None = None
        try:
            self._wait(self._unprocessed, limit_s)
            self._wait(self._unsettled, limit_s)
        except (MemberDiedError, NotInTimeError) as error:
            unsettled = str(error)
        self._books.close(self.crew)
        try:
            names = [member.name for member in crew.group.alive]
            for name in names:
                crew.ask_to_stop(name)
            for name in names:
                crew.wait_gone(name)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
        self._books.tally.take(crew.drain())
        self._books.look_at_commits(at_end=True)
        return unsettled

    # What strikes ask for

    def settle(self, *, since_ms: float) -> None:
        """Wait until the group has recovered from what was done at `since_ms`, and note when.

        A member that ends meanwhile is a finding, and is started again. A group that is not settled
        in time is one too; after three attempts the soak ends.

        Raises:
            Stuck: it never settled.
        """
        for _ in range(_ATTEMPTS):
            self._good_ms = None
            try:
                self._wait(self._unrecovered, self.options.settle_timeout_s)
            except MemberDiedError as error:
                self._blame(error)
                continue
            except NotInTimeError as error:
                self._books.find(Trouble.SETTLED, f"not settled: {error}")
                continue
            self._books.recovered(since_ms, self._good_ms)
            return
        raise Stuck("the group does not settle any more")

    def let_pass(self, seconds: float) -> None:
        """Go on listening for a while."""
        until = monotonic() + seconds
        self._wait(lambda: None if monotonic() >= until else "time passes", seconds + _BEHIND_S)

    def note_stall(self, stall: Stall) -> None:
        """Somebody knows nothing of what happened meanwhile."""
        self._books.tally.note_stall(stall)

    # Questions

    def _wait(self, reason: Callable[[], str | None], timeout_s: float) -> None:
        def watched() -> str | None:
            self._books.tally.take(self.crew.drain())
            if self._stopping.is_set() and not self._finishing:
                raise EndedEarly
            return reason()

        self.crew.wait(watched, timeout_s=timeout_s)

    def _unrecovered(self) -> str | None:
        """Settled, nearly all records processed, and both for a while."""
        why = self._unsettled() or self._behind()
        now = now_ms()
        if why is not None:
            self._good_ms = None
            return why
        self._good_ms = now if self._good_ms is None else self._good_ms
        quiet_ms = now - max(self._good_ms, self.crew.group.changed_ms)
        if quiet_ms < self.options.quiet_ms:
            return f"settled for {quiet_ms:.0f} ms only"
        return None

    def _unsettled(self) -> str | None:
        return unsettled_reason(
            self.crew.group, partitions=self.options.partitions, now_ms=now_ms(), quiet_ms=0
        )

    def _absent(self, name: str) -> str | None:
        there = self.crew.group.members[name].generation is not None
        return None if there else f"{name} has not joined"

    def _behind(self) -> str | None:
        behind = self._written.behind()
        if behind > max(_BEHIND_MIN, _BEHIND_S * self.options.rate):
            return f"{behind} records wait"
        return None

    def _unprocessed(self) -> str | None:
        missing = sum(coverage.missing_records for coverage in self._books.tally.coverages())
        return f"{missing} records are not processed" if missing else None

    def _processes(self) -> tuple[tuple[str, int], ...]:
        members = ((f"member {n}", self.crew.pid_of(n)) for n in self.options.long_lived)
        return (*self.ground.processes, *((name, pid) for name, pid in members if pid is not None))

    def _blame(self, error: MemberDiedError | NotInTimeError) -> None:
        """Note who ended by itself, or did not do what it was asked to, and start it again."""
        if isinstance(error, NotInTimeError):
            self._books.find(Trouble.SETTLED, str(error))
            return
        for death in self.crew.deaths:
            self._books.find(Trouble.MEMBERS, str(death))
            for line in dict.fromkeys(death.last_lines):
                self._journal.write("last words", member=death.member, line=line)
        self.crew.deaths.clear()
        if self._finishing:
            return
        alive = {member.name for member in self.crew.group.alive}
        for name in sorted(self._expected - alive):
            long_lived = name in self.options.long_lived
            self.crew.start(name, _stage(NATIVE) if long_lived else self.stage)

    def _tell_gauges(self, seen: object) -> None:
        self._journal.write("gauges", processes=seen, records=self._written.acknowledged)


def _stage(name: str) -> Stage:
    release = find_release(name)
    latest = release.latest_native_version or release.latest_version
    return Stage(release=name, upgrade_from=None, latest_version=latest)
