"""The experiment: a group on the old release, bounced member by member to the new one.

Each stage waits until the group has settled, as a careful operator does, and returns what the next
stages need. The end is the same in every experiment: the producer stops, all records must be
processed, and the evidence is collected while the members still run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

from system_tests.live.evidence.ownership import Incarnation
from system_tests.live.evidence.pauses import PauseTerms
from system_tests.live.evidence.records import processed_counts
from system_tests.live.evidence.steps import probing_steps
from system_tests.live.evidence.verdict import Evidence, Verdict, check_evidence, version_bound
from system_tests.live.group import unsettled_reason
from system_tests.live.hold_back import HeldGroup, raise_and_lower
from system_tests.live.options import LiveOptions
from system_tests.live.order import bounce_order, find_member, member_names
from system_tests.live.parts import Parts, open_parts
from system_tests.live.plan import LivePlan, Stage
from system_tests.live.processes import FOREIGN, MemberDiedError, NotInTimeError, Screen
from system_tests.live.replacing import replace_brokers
from system_tests.live.report import Death, Outcome
from system_tests.trace import Symbol

_SESSIONS_PER_CRASH = 2  # one expires, and the rebalance after it takes as long at worst


def run_live_bounce(options: LiveOptions, plan: LivePlan, screen: Screen) -> Outcome:
    """Run one experiment, from the first process to the last; call this from the main thread.

    Args:
        options: the numbers.
        plan: the path.
        screen: where the trace goes.

    Raises:
        EnvironmentFailureError: no broker, a port in use, a topic that cannot be created.
    """
    with open_parts(options, screen) as parts:
        return LiveBounce(options, plan, parts).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounced:
    """What the bounces have done besides moving the members to another release.

    Attributes:
        seconds: how long all of them took.
        replacements: (from, to) in monotonic ms: all brokers were replaced meanwhile.
        foreign_done: the foreign member has joined and left again.
    """

    seconds: float = 0.0
    replacements: tuple[tuple[float, float], ...] = ()
    foreign_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LastState:
    """The group at the end, while its members still run.

    Attributes:
        used_versions: member -> the version that it writes.
        generation: of the group, 0 if no member has an assignment.
        gone: incarnations that had ended before.
        unsettled: why the group is not settled, or None.
    """

    used_versions: dict[str, int]
    generation: int
    gone: frozenset[Incarnation]
    unsettled: str | None


class LiveBounce:
    """The stages of one experiment; each takes what it needs and returns what it found.

    Args:
        options: the numbers.
        plan: the path.
        parts: broker, members, producer and random generator.
    """

    def __init__(self, options: LiveOptions, plan: LivePlan, parts: Parts) -> None:
        self._options = options
        self._plan = plan
        self._environment = parts.environment
        self._members = parts.members
        self._producer = parts.producer
        self._rng = parts.rng
        self._names = member_names(options.members)

    def run(self) -> Outcome:
        """Run all stages; an experiment that a member or a limit ended early has no verdict."""
        began_s = monotonic()
        first_generation: int | None = None
        bounced, last = Bounced(), None
        verdict: Verdict | None = None
        failure: str | None = None
        death: Death | None = None
        try:
            first_generation = self._start_group()
            bounced = self._bounce_all()
            self._process_rest()
            last = self._last_state()
            self._stop_all()
            verdict = check_evidence(self._evidence(first_generation, bounced, last))
        except MemberDiedError as error:
            failure, death = str(error), Death.of(error)
        except NotInTimeError as error:
            failure = str(error)
        members = self._members
        return Outcome(
            verdict=verdict,
            failure=failure,
            death=death,
            used_versions=self._used_versions() if last is None else last.used_versions,
            records={m.name: m.records for m in members.view.members.values()},
            first_generation=first_generation,
            generation=(last and last.generation) or members.view.generation,
            steps=probing_steps(members.reports),
            reports=tuple(members.reports),
            is_taken_back=self._options.take_back,
            ended_ms=dict(members.ended_ms),
            seconds=monotonic() - began_s,
            bounce_seconds=bounced.seconds,
        )

    # Stages

    def _start_group(self) -> int:
        """Start producer and members; return the generation of the settled group."""
        servers, group = self._environment.bootstrap_servers, self._environment.group_id
        self._members.say(
            f"look meanwhile: assignor inspect --bootstrap-server {servers} --group {group}"
        )
        for sentence in self._plan.notes[:1]:
            self._members.say(sentence)
        self._producer.start()
        for name in self._names:
            self._members.start(name, self._plan.before)
        self._settle()
        return self._members.view.generation or 0

    def _bounce_all(self) -> Bounced:
        """Bounce the members to every stage, and back if the options ask for it."""
        began_s = monotonic()
        bounced = Bounced()
        for number, stage in enumerate(self._plan.stages):
            bounced = self._bounce(stage, bounced, kill=None if number else self._options.kill)
        seconds = monotonic() - began_s
        if self._options.hold_back:
            stage, limit_s = self._plan.stages[-1], self._options.settle_timeout_s
            raise_and_lower(
                HeldGroup(self._members, self._settle, self._environment, stage, limit_s)
            )
        if self._options.take_back:
            bounced = self._bounce(self._plan.before, bounced, kill=None)
            seconds = monotonic() - began_s
        return replace(bounced, seconds=seconds)

    def _bounce(self, stage: Stage, bounced: Bounced, *, kill: str | None) -> Bounced:
        """Move every member to the stage, one by one; `kill` ends that member in the middle."""
        if self._options.switches.offline:
            self._bounce_offline(stage)
            return bounced
        leader = self._members.view.leader
        order = bounce_order(self._options.order, self._names, leader=leader, rng=self._rng)
        self._members.say(f"bounce to {stage.describe()}, order {' '.join(order)}")
        killed: str | None = None
        for position, name in enumerate(order):
            if position == len(order) // 2:
                killed = self._kill(kill, stage) if kill is not None else None
                bounced = self._replace_brokers(bounced)
            if name != killed:
                self._members.stop(name)
                if stage.expires:
                    self._settle(extra_s=self._options.session_timeout_ms / 1000)
                self._members.wait_down(name, self._options.restart_ms)
                self._members.start(name, stage)
                self._settle()
            if self._options.garbage and not bounced.foreign_done and self._admits_foreign():
                self._let_foreign_member_in(stage)
                bounced = replace(bounced, foreign_done=True)
        return bounced

    def _bounce_offline(self, stage: Stage) -> None:
        self._members.say(f"offline upgrade to {stage.describe()}: stop all, start all")
        self._stop_all()
        for name in self._names:
            self._members.start(name, stage)
        self._settle()

    def _replace_brokers(self, bounced: Bounced) -> Bounced:
        if not self._options.replace_brokers:
            return bounced
        began_ms = monotonic() * 1000
        replace_brokers(self._members, self._environment, self._options.settle_timeout_s)
        self._settle()
        replacement = (began_ms, monotonic() * 1000)
        return replace(bounced, replacements=(*bounced.replacements, replacement))

    def _kill(self, wanted: str, stage: Stage) -> str:
        """Kill the leader or a member, and start it on the stage; return its name."""
        leader = self._members.view.leader or self._names[0]
        victim = leader if wanted == "leader" else find_member(wanted, self._names)
        self._members.kill(victim)
        self._members.start(victim, stage)
        self._settle(extra_s=self._options.session_timeout_ms / 1000 * _SESSIONS_PER_CRASH)
        return victim

    def _admits_foreign(self) -> bool:
        view = self._members.view
        return self._plan.admits_foreign(view.leader and view.members[view.leader].release)

    def _let_foreign_member_in(self, stage: Stage) -> None:
        """Start a foreign member, wait until it is quarantined, and stop it."""
        members = self._members

        def has_quarantined() -> bool:
            return bool(members.view.decision and members.view.decision.quarantined_members)

        members.start_foreign(stage)
        self._wait(
            lambda: None if has_quarantined() else "no leader has quarantined the foreign member"
        )
        self._settle()
        members.stop(FOREIGN)
        self._wait(
            lambda: "the foreign member is still in the group" if has_quarantined() else None
        )
        self._settle()

    def _process_rest(self) -> None:
        """Stop the producer, and wait until every record is processed."""
        self._producer.stop()
        if self._producer.failed:
            raise NotInTimeError(f"a record could not be written: {self._producer.failed}")
        self._members.say(f"no more records; {sum(self._producer.counts().values())} are written")
        self._wait(self._unprocessed)

    def _last_state(self) -> LastState:
        """Return the state of the group, after a rebalance that has already begun."""
        gone = frozenset(self._members.ended_ms)
        unsettled: str | None = None
        try:
            self._wait(lambda: self._unsettled(quiet_ms=0))
        except NotInTimeError as error:
            unsettled = str(error)
        return LastState(
            used_versions=self._used_versions(),
            generation=self._members.view.generation or 0,
            gone=gone,
            unsettled=unsettled,
        )

    def _stop_all(self) -> None:
        for name in self._names:
            self._members.ask_to_stop(name)
        for name in self._names:
            self._members.wait_gone(name)

    # Conditions

    def _wait(self, reason: Callable[[], str | None]) -> None:
        self._members.wait(reason, timeout_s=self._options.settle_timeout_s)

    def _settle(self, *, extra_s: float = 0.0) -> None:
        """Wait until the group is settled and quiet, and trace how many tasks each member has."""
        members, options = self._members, self._options

        def reason() -> str | None:
            if self._producer.failed:
                return f"a record could not be written: {self._producer.failed}"
            return self._unsettled(quiet_ms=options.quiet_ms)

        try:
            members.wait(reason, timeout_s=options.settle_timeout_s + extra_s)
        except NotInTimeError as error:
            raise NotInTimeError(f"the group did not settle: {error}") from error
        listed = ", ".join(f"{m.name} {len(m.active_tasks)}" for m in members.view.alive)
        leader = members.view.leader
        acting = {} if leader is None else {leader: Symbol.LEADS}
        members.say(f"settled; tasks {listed}", acting=acting)

    def _unsettled(self, *, quiet_ms: float) -> str | None:
        return unsettled_reason(
            self._members.view,
            partitions=self._options.partitions,
            now_ms=monotonic() * 1000,
            quiet_ms=quiet_ms,
        )

    def _unprocessed(self) -> str | None:
        if self._producer.failed:
            return f"a record could not be written: {self._producer.failed}"
        processed = processed_counts(self._members.reports)
        behind = {
            partition: count - processed.get(partition, 0)
            for partition, count in self._producer.counts().items()
            if processed.get(partition, 0) < count
        }
        if not behind:
            return None
        return f"{sum(behind.values())} records are not processed (partitions {sorted(behind)})"

    def _used_versions(self) -> dict[str, int]:
        alive = self._members.view.alive
        return {m.name: m.used_version for m in alive if m.used_version is not None}

    # Evidence

    def _evidence(self, first_generation: int, bounced: Bounced, last: LastState) -> Evidence:
        options, members = self._options, self._members
        is_offline = options.switches.offline
        return Evidence(
            reports=tuple(members.reports),
            written_ms=self._producer.written_ms(),
            ended_ms=members.ended_ms,
            gone=last.gone,
            crashed=frozenset(members.crashed),
            used_versions=last.used_versions,
            promised_versions=self._plan.promised_versions,
            first_generation=first_generation,
            last_generation=last.generation,
            unsettled=last.unsettled,
            version_bound=version_bound(
                members=options.members, rounds=len(self._plan.stages) + options.take_back
            ),
            pause_terms=None if is_offline else self._pause_terms(bounced),
            until_ms=monotonic() * 1000,
            quarantined=bounced.foreign_done if options.garbage else None,
            static=options.switches.static,
        )

    def _pause_terms(self, bounced: Bounced) -> PauseTerms:
        return PauseTerms(
            session_ms=self._options.session_timeout_ms,
            heartbeat_ms=self._options.heartbeat_ms,
            ended_ms=dict(self._members.ended_ms),
            crashed=frozenset(self._members.crashed),
            static=self._options.switches.static,
            disturbed=bounced.replacements,
        )
