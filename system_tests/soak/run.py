"""The soak itself: start the group, disturb it until the time is over, stop it, collect figures."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from threading import Event
from time import monotonic

from probing import find_release
from system_tests.live import (
    MemberDiedError,
    NotInTimeError,
    Screen,
    Stage,
    unsettled_reason,
)
from system_tests.soak.disturbances import apply_disturbance, now_ms
from system_tests.soak.findings import SoakOutcome, Trouble, rebalances_of
from system_tests.soak.gauges import Gauges
from system_tests.soak.journal import Journal
from system_tests.soak.options import NATIVE, WARM_UP_S, SoakOptions
from system_tests.soak.parts import SoakParts, open_soak_parts
from system_tests.soak.running_log import RunningLog
from system_tests.soak.schedule import Disturbance, Kind, draw_schedule
from system_tests.soak.tally import Stall, Tally

_BEHIND_S = 2.0
_BEHIND_MIN = 50
_CALM_REBALANCES = 2
_ATTEMPTS = 3


class EndedEarly(Exception):
    """The operator asked for the verdict so far."""


class Stuck(Exception):
    """The soak cannot go on; the message says why."""


def run_soak(
    options: SoakOptions, *, screen: Screen, journal: Journal, stopping: Event
) -> SoakOutcome:
    """Run one soak, from the first process to the last; call this from the main thread.

    Args:
        options: the numbers.
        screen: where the trace goes.
        journal: where events go.
        stopping: set it to have the verdict early.

    Raises:
        EnvironmentFailureError: no broker, or it did not restart.
    """
    with open_soak_parts(options, screen) as parts, ExitStack() as stack:
        soak = Soak(options, parts, journal=journal, stopping=stopping)
        stack.callback(soak.gauges.stop)
        return soak.run()


class Soak:
    """The stages of one soak.

    Args:
        options: the numbers.
        parts: broker, members, producer and random generator.
        journal: where events go.
        stopping: set by the operator to have the verdict early.

    Attributes:
        stage: the release of the last bounce.
        gauges: sample the long-lived processes.
    """

    def __init__(
        self, options: SoakOptions, parts: SoakParts, *, journal: Journal, stopping: Event
    ) -> None:
        self.options = options
        self.environment, self.members, self.rng = parts.environment, parts.members, parts.rng
        self.stage = _stage(NATIVE)
        self._producer, self._written = parts.producer, parts.written
        self._journal, self._stopping = journal, stopping
        zombie_ms = float(options.session_timeout_ms)
        tally = Tally(parts.written, partitions=options.partitions, zombie_ms=zombie_ms)
        self._log = RunningLog(tally, journal, parts.members.say)
        self.gauges = Gauges(
            self._processes,
            every_s=options.sample_s,
            on_sample=self._write_sample,
            warm_up_s=WARM_UP_S,
        )
        self._expected = set(options.names[: options.members])
        self._good_ms: float | None = None
        self._finishing = False

    def run(self) -> SoakOutcome:
        """Run all stages; a soak that ends early has an outcome, too."""
        began_s = monotonic()
        early: str | None = None
        try:
            self._start_group()
            began_s = monotonic()
            self.gauges.start()
            self._disturb_until(began_s + 60 * self.options.minutes)
        except EndedEarly:
            early = "it was interrupted"
        except Stuck as error:
            early = str(error)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
            early = "the group did not start"
        seconds = monotonic() - began_s
        self.gauges.stop()
        unsettled = self._finish()
        return SoakOutcome(
            figures=self._log.figures,
            coverages=self._log.tally.coverages(),
            growths=self.gauges.growths(),
            undecided=self.gauges.undecided(),
            gauge_failures=self.gauges.failures,
            unsettled=unsettled,
            early=early,
            seconds=seconds,
            journal_bytes=self._journal.bytes,
            broker_bytes=None
            if self.environment.real is None
            else self.environment.real.disk_bytes(),
        )

    def _start_group(self) -> None:
        self._journal.write("began", options=asdict(self.options))
        self._producer.start()
        since_ms = now_ms()
        # The first to join leads. Long-lived members join last, so that others lead first.
        long_lived = self.options.long_lived
        for name in sorted(self._expected, key=lambda name: (name in long_lived, name)):
            self.members.start(name, self.stage)
            self._wait(partial(self._absent, name), self.options.settle_timeout_s)
        self.settle(since_ms=since_ms)
        self._log.close(self.members)

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
        log = self._log
        log.begin(disturbance.kind.value, disturbance.number)
        self._journal.write("disturbance", **asdict(disturbance))
        before = len(log.recoveries_s())
        try:
            apply_disturbance(self, disturbance)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
            self.settle(since_ms=now_ms())
        window = log.close(self.members)
        self._journal.write(
            "settled",
            number=disturbance.number,
            kind=disturbance.kind,
            recoveries_s=log.recoveries_s()[before:],
            generation=self.members.view.generation,
            rebalances=rebalances_of(window),
            moves=window.moves,
            longest_wait_ms=round(window.longest_wait_ms),
        )

    def _be_calm(self, seconds: float) -> None:
        """Leave the group alone for a while, and note the rebalances that it has by itself."""
        if self._producer.failed:
            raise Stuck("the producer cannot write records any more")
        before = self.members.view.generation or 0
        try:
            self.let_pass(seconds)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
            self.settle(since_ms=now_ms())
            return
        self._log.calm((self.members.view.generation or 0) - before, most=_CALM_REBALANCES)

    def _finish(self) -> str | None:
        """Stop the producer, wait for the group, stop it; return why it did not settle, or None."""
        self._finishing = True
        members, limit_s = self.members, self.options.settle_timeout_s
        self._producer.stop()
        if self._producer.failed:
            self._log.find(
                Trouble.RECORDS, f"a record could not be written: {self._producer.failed}"
            )
        members.say(f"no more records; {sum(self._written.ends().values())} are written")
        unsettled: str | None = None
        try:
            self._wait(self._unprocessed, limit_s)
            self._wait(self._unsettled, limit_s)
        except (MemberDiedError, NotInTimeError) as error:
            unsettled = str(error)
        self._log.close(self.members)
        try:
            names = [member.name for member in members.view.alive]
            for name in names:
                members.ask_to_stop(name)
            for name in names:
                members.wait_gone(name)
        except (MemberDiedError, NotInTimeError) as error:
            self._blame(error)
        self._log.tally.take(members.drain())
        self._log.check_commits(at_end=True)
        return unsettled

    # For disturbances

    def settle(self, *, since_ms: float) -> None:
        """Wait until the group has recovered from what was done at `since_ms`, and note when.

        A member that ends meanwhile is a finding, and is started again. A group that does not
        settle in time is a finding, too; after three attempts the soak ends.

        Raises:
            Stuck: the group did not settle.
        """
        for _ in range(_ATTEMPTS):
            self._good_ms = None
            try:
                self._wait(self._unrecovered, self.options.settle_timeout_s)
            except MemberDiedError as error:
                self._blame(error)
                continue
            except NotInTimeError as error:
                self._log.find(Trouble.SETTLED, f"not settled: {error}")
                continue
            self._log.recovered(since_ms, self._good_ms)
            return
        raise Stuck("the group does not settle any more")

    def let_pass(self, seconds: float) -> None:
        """Read reports for this long."""
        until = monotonic() + seconds
        self._wait(lambda: None if monotonic() >= until else "time passes", seconds + _BEHIND_S)

    def note_stall(self, stall: Stall) -> None:
        """Record that a member was paused."""
        self._log.tally.note_stall(stall)

    # Questions

    def _wait(self, reason: Callable[[], str | None], timeout_s: float) -> None:
        def watched() -> str | None:
            self._log.tally.take(self.members.drain())
            if self._stopping.is_set() and not self._finishing:
                raise EndedEarly
            return reason()

        self.members.wait(watched, timeout_s=timeout_s)

    def _unrecovered(self) -> str | None:
        """Return why the group is not settled, nor nearly all records processed, for a while."""
        why = self._unsettled() or self._behind()
        now = now_ms()
        if why is not None:
            self._good_ms = None
            return why
        self._good_ms = now if self._good_ms is None else self._good_ms
        quiet_ms = now - max(self._good_ms, self.members.view.changed_ms)
        if quiet_ms < self.options.quiet_ms:
            return f"settled for {quiet_ms:.0f} ms only"
        return None

    def _unsettled(self) -> str | None:
        return unsettled_reason(
            self.members.view, partitions=self.options.partitions, now_ms=now_ms(), quiet_ms=0
        )

    def _absent(self, name: str) -> str | None:
        has_joined = self.members.view.members[name].generation is not None
        return None if has_joined else f"{name} has not joined"

    def _behind(self) -> str | None:
        behind = self._written.behind()
        if behind > max(_BEHIND_MIN, _BEHIND_S * self.options.rate):
            return f"{behind} records are not processed"
        return None

    def _unprocessed(self) -> str | None:
        missing = sum(coverage.missing_records for coverage in self._log.tally.coverages())
        return f"{missing} records are not processed" if missing else None

    def _processes(self) -> tuple[tuple[str, int], ...]:
        members = ((f"member {n}", self.members.pid_of(n)) for n in self.options.long_lived)
        return (
            *self.environment.processes,
            *((name, pid) for name, pid in members if pid is not None),
        )

    def _blame(self, error: MemberDiedError | NotInTimeError) -> None:
        """Add a finding for each member that died or for the timeout; start dead members again."""
        if isinstance(error, NotInTimeError):
            self._log.find(Trouble.SETTLED, str(error))
            return
        for death in self.members.deaths:
            self._log.find(Trouble.MEMBERS, str(death))
            for line in dict.fromkeys(death.last_lines):
                self._journal.write("last words", member=death.member, line=line)
        self.members.deaths.clear()
        if self._finishing:
            return
        alive = {member.name for member in self.members.view.alive}
        for name in sorted(self._expected - alive):
            long_lived = name in self.options.long_lived
            self.members.start(name, _stage(NATIVE) if long_lived else self.stage)

    def _write_sample(self, processes: object) -> None:
        self._journal.write("gauges", processes=processes, records=self._written.acknowledged)


def _stage(name: str) -> Stage:
    release = find_release(name)
    latest = release.latest_native_version or release.latest_version
    return Stage(release=name, upgrade_from=None, latest_version=latest)
