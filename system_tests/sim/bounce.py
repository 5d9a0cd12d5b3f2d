"""A simulated rolling bounce: one group is brought from one release to another, member by member.

One seed decides everything that the options leave open: the releases, the order, how long a member
is down, which faults occur and when. Pins and second bounces follow `probing.upgrade_path`. Faults
occur while members are bounced (safety). Then they stop, and the group has to come to rest
(liveness). At last one rebalance is forced, after which every member has to write the latest
version that all members support.
"""

from dataclasses import dataclass, replace
from functools import partial

from probing import Bounce as Stage
from system_tests.engine import Broken, Finished, OptionError, Outcome, Scheduler, check_events
from system_tests.pauses import PartitionPause
from system_tests.rebalances import Rebalances
from system_tests.sim.checkers import SAFETY, check_trace, nothing_is_forgotten
from system_tests.sim.cost import Cost, cost_of
from system_tests.sim.dimension_checkers import check_dimensions
from system_tests.sim.draws import draw, shape_of
from system_tests.sim.events import Drained, Happening, Settled
from system_tests.sim.known_issues import known_issues
from system_tests.sim.liveness import (
    check_all_members_are_up,
    check_final_version,
    check_resting_versions,
    check_settles,
    check_version_rebalances,
    count_rebalances,
)
from system_tests.sim.pauses import check_pauses, pauses_of
from system_tests.sim.plan import (
    FAULTS,
    BounceOptions,
    Plan,
    most_rebalances,
    plan_bounce,
    version_bound,
)
from system_tests.sim.topology_checkers import TOPOLOGY_RULES
from system_tests.sim.topology_evidence import TopologyEvidence
from system_tests.sim.world.behaviour import find_program
from system_tests.sim.world.observing import has_forgotten, next_followup_ms, restoring_ms
from system_tests.sim.world.settling import SETTLE_MS, settle_world
from system_tests.sim.world.setup import RESTARTS, Network, WorldSetup
from system_tests.sim.world.simulation import World

_RESTORE_WAIT_MS = 300_000  # longer restores go on during the next bounce
_FAULT_CHANCE = 0.3
# Faults under which every live member gets its answer in time.
_RELIABLE = frozenset({"crash", "leader", "disk", "duplicate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BounceOutcome(Outcome):
    """The result of one bounce.

    Attributes:
        options: with everything drawn; plan: what was done.
        afterwards: what happened in the rebalance that was forced at the end; empty if the group
            did not come to rest before. It counts neither as a rebalance of the bounce nor as cost.
        rebalances, cost, version_bound: counted.
        pauses: of partitions, each with its bound; offline, where downtime is asked for, without.
    """

    options: BounceOptions
    plan: Plan
    afterwards: tuple[Happening, ...]
    rebalances: Rebalances
    cost: Cost
    version_bound: int
    pauses: tuple[PartitionPause, ...]

    @property
    def is_warming(self) -> bool:
        """Whether it ended, as `followups_most` asks for, before all copies had caught up."""
        has_copies = self.options.dimensions.has_copies
        return has_copies and not any(isinstance(event, Drained) for event in self.trace)


class Bounce:
    """One bounce while it runs."""

    def __init__(self, options: BounceOptions) -> None:
        """Draw what the options leave open, and make the world.

        Raises:
            ReleaseError, OptionError: see `plan_bounce`.
        """
        unknown = sorted(options.faults - set(FAULTS))
        if unknown:
            raise OptionError(f"unknown fault {unknown[0]!r}; choose from {', '.join(FAULTS)}")
        self.scheduler = Scheduler(options.seed)
        self.asked = options
        self.options = options = draw(options, self.scheduler)
        setup = WorldSetup(
            seed=options.seed,
            processes=options.members,
            threads=options.threads,
            static=options.static,
            partitions=options.partitions,
            session_timeout_ms=options.session_timeout_ms,
            config=options.dimensions.config,
            rates=options.rates or options.dimensions.rates,
            dimensions=options.dimensions,
            change=options.change,
        )
        self.world = World(setup, scheduler=self.scheduler)
        self.plan = plan_bounce(self.options)

    def run(self) -> BounceOutcome:
        """Run to the end and check all rules."""
        world, scheduler = self.world, self.scheduler
        processes = range(self.options.members)
        for process in processes:
            world.start(process, self.plan.old, program=0)
        rests = self.settle()
        if rests:
            self._fill()
            if self.options.offline:
                rests = self._offline()
            else:
                for number, stage in enumerate(self.plan.stages):
                    for process in scheduler.shuffled(processes):
                        rests = self._bounce(process, stage, expires=number in self.plan.waits)
            world.network = world.setup.network
            if self.options.faults:
                self._end_faults()
                rests = self.settle()
            rests = rests and self._drain()
        ends = len(world.trace)
        if rests and world.force_rebalance():
            self.settle()
        return self._outcome(ends)

    def settle(self) -> bool:
        """Wait for the group to come to rest; returns whether it did."""
        return settle_world(self.world)

    def _fill(self) -> None:
        """Fill copies of a given size; the clock stays: work and draws do not depend on it."""
        if self.options.rates is not None:
            for disk in self.world.disks:
                disk.fill(self.world.now_ms)

    def _drain(self) -> bool:
        """Wait for follow-ups while copies warm up; returns whether the group came to rest."""
        world, dimensions = self.world, self.options.dimensions
        if not dimensions.has_copies:
            return True
        bound = dimensions.followups_most(
            self.options.partitions, hops=not find_program(self.plan.new).is_native
        )
        most, rounds = self.options.followups_most, 0
        while rounds <= bound and (due_ms := next_followup_ms(world)) is not None:
            if rounds == most:
                return True
            world.run_for(due_ms - world.now_ms)
            rounds += 1
            if not self.settle():
                return False
        world.record(Drained(world.now_ms, rounds, bound))
        return True

    def _bounce(self, process: int, stage: Stage, *, expires: bool) -> bool:
        """Bounce one process; returns whether the group came to rest after it."""
        world, scheduler = self.world, self.scheduler
        self._draw_faults(process)
        world.stop(process)
        if expires:
            world.run(until=partial(has_forgotten, world, process), within_ms=SETTLE_MS)
        world.run_for(RESTARTS.drawn_ms(scheduler, self.options.restart_ms))
        if world.is_up(process):  # a fault brought it back as it was: bounce it as it should be
            world.stop(process)
        self._start(process, stage)
        if self.options.faults and scheduler.happens(0.3):
            world.run_for(scheduler.delay(0, 20_000))  # an operator who does not wait
            return False
        rests = self.settle()
        most_ms = world.now_ms + _RESTORE_WAIT_MS * self.options.waits_for_restores
        while rests and (wait_ms := min(restoring_ms(world), most_ms - world.now_ms)) > 0:
            world.run_for(wait_ms)
            rests = self.settle()
        return rests

    def _offline(self) -> bool:
        world, options, processes = self.world, self.options, range(self.options.members)
        for process in processes:
            world.stop(process)
        starts = [(0, process) for process in processes]
        if options.waits_for_sessions:
            world.run(until=partial(has_forgotten, world, *processes), within_ms=SETTLE_MS)
            starts = sorted(
                (RESTARTS.drawn_ms(self.scheduler, options.restart_ms), p) for p in processes
            )
        else:
            world.run_for(self.scheduler.delay(60_000, 120_000))
        began_ms = world.now_ms
        for down_ms, process in starts:
            if began_ms + down_ms > world.now_ms:
                world.run_for(began_ms + down_ms - world.now_ms)
            self._start(process, self.plan.stages[-1])
        return self.settle()

    def _start(self, process: int, stage: Stage) -> None:
        """Start a process with what it runs after this stage."""
        if self.options.deletes_state and stage.release == self.plan.new:
            self.world.lose_disk(process)
        newest = len(self.world.applications) - 1
        self.world.start(process, stage.release, stage.upgrade_from, program=newest)

    def _draw_faults(self, process: int) -> None:
        """Draw the faults of the next bounce."""
        world, scheduler, faults = self.world, self.scheduler, self.options.faults
        if not faults:
            return
        world.network = replace(
            Network(),
            drop=0.03 if "drop" in faults else 0.0,
            duplicate=0.05 if "duplicate" in faults else 0.0,
            late=0.10 if "delay" in faults else 0.0,
        )
        for fault in FAULTS:
            if fault not in faults or not scheduler.happens(_FAULT_CHANCE):
                continue
            victim = scheduler.delay(0, self.options.members - 1)
            at_ms, down_ms = scheduler.delay(0, 15_000), scheduler.delay(500, 20_000)
            if fault == "pause":
                world.do_later(at_ms, "pause", victim)
            elif fault == "slow":
                world.do_later(at_ms, "slow_down", victim, scheduler.delay(100, 5_000))
            elif fault == "crash":
                world.do_later(at_ms, "kill", victim)
                world.do_later(at_ms + down_ms, "restart", victim)
            elif fault == "leader":
                world.do_later(at_ms, "kill_leader", down_ms)
            elif fault == "coordinator":
                world.do_later(at_ms, "move_coordinator")
            elif fault == "disk":
                world.do_later(scheduler.delay(0, 200), "lose_disk", process)

    def _end_faults(self) -> None:
        """Let every process run the last stage, at its normal speed."""
        stage = self.plan.stages[-1]
        for process in range(self.options.members):
            for thread in self.world.threads:
                if thread.process == process:
                    thread.slow_ms = 0
            if not self.world.is_up(process):
                self._start(process, stage)

    def _check_change(self, ends: int) -> list[Broken]:
        """Check the trace by the rules of a change of the topology."""
        world, options = self.world, self.options
        is_free = bool(options.faults) or options.offline
        evidence = TopologyEvidence(
            forms=world.application.forms,
            partitions=options.partitions,
            most_rebalances=None if is_free else most_rebalances(options),
            is_reliable=options.faults <= _RELIABLE,
        )
        trace = world.trace[:ends]
        if trace and isinstance(trace[-1], Settled):
            trace.append(Finished(trace[-1].at_ms))
        return check_events(trace, evidence, TOPOLOGY_RULES)

    def _outcome(self, ends: int) -> BounceOutcome:
        """Check the whole trace; the bounce ends at index `ends`, before the forced rebalance."""
        world, options, plan = self.world, self.options, self.plan
        trace, afterwards = tuple(world.trace[:ends]), tuple(world.trace[ends:])
        bound = version_bound(threads=len(world.threads), stages=len(plan.stages))
        counted = count_rebalances(trace)
        # A change of the topology has its own checkers of who runs what.
        safety = [c for c in SAFETY if options.change is None or c.check != nothing_is_forgotten]
        broken = check_trace(world.trace, world.task_of, safety)
        if options.change is not None:
            broken += self._check_change(ends)
        if world.setup.is_observed:
            broken += [violation for event in world.trace for violation in check_dimensions(event)]
        broken += check_settles(world.trace)
        broken += check_resting_versions(trace, plan.resting_versions, is_uniform=plan.is_uniform)
        broken += check_final_version(afterwards, plan.final_version)
        missing = [thread.name for thread in world.threads if not thread.is_up]
        if not any(violation.rule == "nobody dies" for violation in broken):
            broken += check_all_members_are_up(missing, at_ms=world.now_ms)
        if not options.faults:
            broken += check_version_rebalances(counted, bound, at_ms=trace[-1].at_ms)
        is_bounded = not (options.offline or (options.change and options.faults))
        pauses = pauses_of(
            world.trace,
            static=options.static,
            is_bounded=is_bounded,
            session_timeout_ms=options.session_timeout_ms,
        )
        if options.change is not None:
            topics = world.applications[-1].topics
            pauses = tuple(p for p in pauses if p.partition.rpartition("-")[0] in topics)
        broken += check_pauses(pauses)
        shape = shape_of(options, find_program(plan.old), find_program(plan.new))
        return BounceOutcome(
            asked=self.asked,
            options=options,
            plan=plan,
            old=plan.old,
            new=plan.new,
            lanes=tuple(thread.name for thread in world.threads),
            trace=trace,
            afterwards=afterwards,
            broken=tuple(broken),
            known=known_issues(shape),
            rebalances=counted,
            cost=cost_of(trace, records_per_second=world.setup.rates.growth),
            version_bound=bound,
            pauses=pauses,
        )


def run_bounce(options: BounceOptions) -> BounceOutcome:
    """Run one experiment to its end; raises ReleaseError and OptionError as `Bounce` does."""
    return Bounce(options).run()
