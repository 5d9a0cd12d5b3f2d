"""The experiment: a group on the old release, bounced member by member to the new one.

Each step waits until the group has settled before the next begins, as a careful operator would. The
end is the same in every experiment: no more records, everything written must be processed, then the
verdict is asked for while the members still run, so that it judges a living group.
"""

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from time import monotonic

from system_tests.live.environment import World, open_world
from system_tests.live.evidence.pauses import PauseTerms
from system_tests.live.evidence.records import processed_counts
from system_tests.live.evidence.steps import probing_steps
from system_tests.live.evidence.verdict import Evidence, Verdict, judge, version_bound
from system_tests.live.group import unsettled_reason
from system_tests.live.hold_back import HeldGroup, raise_and_lower
from system_tests.live.order import bounce_order, find_member, member_names
from system_tests.live.plan import LiveOptions, LivePlan, Stage
from system_tests.live.processes import FOREIGN, Crew, MemberDiedError, NotInTimeError, Screen
from system_tests.live.producer import WordProducer
from system_tests.live.replacing import replace_brokers
from system_tests.live.report import Death, Outcome
from system_tests.trace import Symbol

_GRACE_S = 1.0
# A crash costs a session timeout, and the rebalance that notices it as much again at worst.
_SESSIONS_PER_CRASH = 2


class LiveBounce:
    """One experiment, from the first process to the last.

    Args:
        options: the numbers.
        plan: the path.
        screen: where the trace goes.
    """

    def __init__(self, options: LiveOptions, plan: LivePlan, screen: Screen) -> None:
        self._options = options
        self._plan = plan
        self._screen = screen
        self._dice = Random(options.seed)  # noqa: S311 an experiment is repeatable, not secret
        self._names = member_names(options.members)
        self._killed = False
        self._garbage_done = False
        self._quarantined = False if options.garbage else None
        self._last_versions: dict[str, int] = {}
        self._last_generation = 0
        self._disturbed: list[tuple[float, float]] = []

    def run(self) -> Outcome:
        """Run it; call this from the main thread.

        Raises:
            SurroundingsError: no broker, a port in use, a topic that cannot be made.
        """
        with ExitStack() as stack:
            self._world = world = stack.enter_context(open_world(self._options))
            self._crew = Crew(
                self._names,
                bootstrap_servers=world.bootstrap_servers,
                group_id=world.group_id,
                topic=world.topic,
                options=self._options,
                screen=self._screen,
                dice=self._dice,
                stop_s=self._options.settle_timeout_s,
            )
            stack.callback(self._crew.end, grace_s=_GRACE_S)
            self._producer = WordProducer.of(world, self._options)
            stack.callback(self._producer.close)
            began_s = monotonic()
            bounce_seconds = 0.0
            verdict, failure, death, first_generation = None, None, None, None
            try:
                first_generation = self._start_group()
                bounce_seconds = self._bounce_all(world)
                verdict = self._finish(first_generation)
            except MemberDiedError as error:
                failure = str(error)
                death = Death(
                    member=error.member,
                    why=error.why,
                    explained=error.explained,
                    last_lines=error.last_lines,
                )
            except NotInTimeError as error:
                failure = str(error)
            return Outcome(
                verdict=verdict,
                failure=failure,
                death=death,
                used_versions=self._last_versions or self._used_versions(),
                records={m.name: m.records for m in self._crew.group.members.values()},
                first_generation=first_generation,
                generation=self._last_generation or self._crew.group.generation,
                steps=probing_steps(self._crew.reports),
                reports=tuple(self._crew.reports),
                is_taken_back=self._options.take_back,
                ended_ms=dict(self._crew.ended_ms),
                seconds=monotonic() - began_s,
                bounce_seconds=bounce_seconds,
            )

    # Steps

    def _bounce_all(self, world: World) -> float:
        """Every stage, and back if that was asked for; returns the seconds it took."""
        began_s = monotonic()
        for stage in self._plan.stages:
            self._bounce(stage)
        seconds = monotonic() - began_s
        if self._options.hold_back:
            stage, limit_s = self._plan.stages[-1], self._options.settle_timeout_s
            raise_and_lower(HeldGroup(self._crew, self._settle, world, stage, limit_s))
        if self._options.take_back:
            self._bounce(self._plan.before)
            seconds = monotonic() - began_s
        return seconds

    def _start_group(self) -> int:
        for sentence in self._plan.notes[:1]:
            self._crew.say(sentence)
        self._producer.start()
        for name in self._names:
            self._crew.start(name, self._plan.before)
        self._settle()
        return self._crew.group.generation or 0

    def _bounce(self, stage: Stage) -> None:
        if self._options.offline:
            self._bounce_offline(stage)
            return
        order = list(
            bounce_order(
                self._options.order, self._names, leader=self._crew.group.leader, dice=self._dice
            )
        )
        self._crew.say(f"bounce to {stage.describe()}, order {' '.join(order)}")
        half = len(order) // 2
        done: set[str] = set()
        for position, name in enumerate(order):
            if position == half and self._options.kill is not None and not self._killed:
                done.add(self._kill_one(stage))
            if position == half and self._options.replace_brokers:
                began_ms = monotonic() * 1000
                replace_brokers(self._crew, self._world, self._options.settle_timeout_s)
                self._settle()
                self._disturbed.append((began_ms, monotonic() * 1000))
            if name not in done:
                self._crew.stop(name)
                self._crew.start(name, stage)
                self._settle()
                done.add(name)
            if self._options.garbage and not self._garbage_done and self._admits_foreign():
                self._let_foreign_member_in(stage)

    def _bounce_offline(self, stage: Stage) -> None:
        self._crew.say(f"offline upgrade to {stage.describe()}: stop all, start all")
        for name in self._names:
            self._crew.ask_to_stop(name)
        for name in self._names:
            self._crew.wait_gone(name)
        for name in self._names:
            self._crew.start(name, stage)
        self._settle()

    def _kill_one(self, stage: Stage) -> str:
        self._killed = True
        wanted = self._options.kill or ""
        victim = self._crew.group.leader if wanted == "leader" else find_member(wanted, self._names)
        victim = victim or self._names[0]
        self._crew.kill(victim)
        self._crew.start(victim, stage)
        self._settle(extra_s=self._options.session_timeout_ms / 1000 * _SESSIONS_PER_CRASH)
        return victim

    def _admits_foreign(self) -> bool:
        leader = self._crew.group.leader
        return self._plan.admits_foreign(leader and self._crew.group.members[leader].release)

    def _let_foreign_member_in(self, stage: Stage) -> None:
        self._garbage_done = True
        crew = self._crew
        crew.start_foreign(stage)
        self._wait(
            lambda: (
                None
                if crew.group.decision and crew.group.decision.quarantined_members
                else "no leader has quarantined the foreign member"
            )
        )
        self._quarantined = True
        self._settle()
        crew.stop(FOREIGN)
        self._wait(
            lambda: (
                "the foreign member is still in the group"
                if crew.group.decision and crew.group.decision.quarantined_members
                else None
            )
        )
        self._settle()

    def _finish(self, first_generation: int) -> Verdict:
        crew = self._crew
        self._producer.stop()
        if self._producer.failed:
            raise NotInTimeError(f"a record could not be written: {self._producer.failed}")
        crew.say(f"no more records; {sum(self._producer.counts().values())} are written")
        self._wait(self._unprocessed)
        gone, unsettled = frozenset(crew.ended_ms), self._unsettled_at_the_end()
        self._last_versions = self._used_versions()
        self._stop_all()
        return judge(
            Evidence(
                reports=tuple(crew.reports),
                written_ms=self._producer.written_ms(),
                ended_ms=crew.ended_ms,
                gone=gone,
                crashed=frozenset(crew.crashed),
                used_versions=self._last_versions,
                promised_versions=self._plan.promised_versions,
                first_generation=first_generation,
                last_generation=self._last_generation,
                unsettled=unsettled,
                version_bound=version_bound(
                    members=self._options.members,
                    rounds=len(self._plan.stages) + self._options.take_back,
                ),
                pause_bound_ms=self._pause_bound_ms(),
                pause_terms=self._pause_terms(),
                until_ms=monotonic() * 1000,
                quarantined=self._quarantined,
                static=self._options.static,
            )
        )

    def _unsettled_at_the_end(self) -> str | None:
        """Why the group does not settle any more; a rebalance that runs just now is waited for."""
        try:
            self._wait(lambda: self._unsettled(quiet_ms=0))
        except NotInTimeError as error:
            return str(error)
        return None

    def _wait(self, reason: Callable[[], str | None]) -> None:
        self._crew.wait(reason, timeout_s=self._options.settle_timeout_s)

    def _unsettled(self, *, quiet_ms: float) -> str | None:
        return unsettled_reason(
            self._crew.group,
            partitions=self._options.partitions,
            now_ms=monotonic() * 1000,
            quiet_ms=quiet_ms,
        )

    def _stop_all(self) -> None:
        crew = self._crew
        self._last_generation = crew.group.generation or 0
        for name in self._names:
            crew.ask_to_stop(name)
        for name in self._names:
            crew.wait_gone(name)

    # Questions

    def _settle(self, *, extra_s: float = 0.0) -> None:
        crew, options = self._crew, self._options

        def reason() -> str | None:
            if self._producer.failed:
                return f"a record could not be written: {self._producer.failed}"
            return self._unsettled(quiet_ms=options.quiet_ms)

        try:
            crew.wait(reason, timeout_s=options.settle_timeout_s + extra_s)
        except NotInTimeError as error:
            raise NotInTimeError(f"the group did not settle: {error}") from error
        listed = ", ".join(f"{m.name} {len(m.active_tasks)}" for m in crew.group.alive)
        leader = crew.group.leader
        acting = {} if leader is None else {leader: Symbol.LEADS}
        crew.say(f"settled; tasks {listed}", acting=acting)

    def _unprocessed(self) -> str | None:
        if self._producer.failed:
            return f"a record could not be written: {self._producer.failed}"
        processed = processed_counts(self._crew.reports)
        behind = {
            partition: count - processed.get(partition, 0)
            for partition, count in self._producer.counts().items()
            if processed.get(partition, 0) < count
        }
        if not behind:
            return None
        return f"{sum(behind.values())} records are not processed (partitions {sorted(behind)})"

    def _used_versions(self) -> dict[str, int]:
        return {
            m.name: m.used_version for m in self._crew.group.alive if m.used_version is not None
        }

    def _pause_terms(self) -> PauseTerms | None:
        if self._options.offline:
            return None
        return PauseTerms(
            session_ms=self._options.session_timeout_ms,
            heartbeat_ms=self._options.heartbeat_ms,
            ended_ms=dict(self._crew.ended_ms),
            crashed=frozenset(self._crew.crashed),
            static=self._options.static,
            disturbed=tuple(self._disturbed),
        )

    def _pause_bound_ms(self) -> float | None:
        if self._options.offline:
            return None
        sessions = 1 + (_SESSIONS_PER_CRASH if self._crew.crashed else 0)
        return float(self._options.session_timeout_ms * sessions)
