"""A group of native members, the log of its levels, and brokers that learn levels late.

Members and leaders are the real ones and exchange real bytes; what an operator asks for is decided
by the real table. A step is one thing that happens; what follows from it is in `seen`, which the
checkers check. Every member looks for levels at one broker; brokers may be stale as long as they
like, members forget everything when they are started anew, and any member may come to lead.
"""

from collections.abc import Callable
from typing import Any, Final

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberRefused,
    assign_group,
    sticky,
)
from assignor.levels import generation_support
from encoding import TopicPartition
from probing import (
    HELD_BACK,
    RejoinNow,
    member_ranges,
)
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    PERSISTENT_METADATA,
    UNKNOWN_LEVELS,
    FinalizedLevels,
    NodeSupport,
    native_features,
)
from system_tests.engine import Scheduler
from system_tests.levels.events import Event, EventKind
from system_tests.levels.log import GroupLog
from system_tests.levels.members import (
    LATER,
    LATER_FIRST,
    SUBTOPOLOGIES,
    RunningMember,
    program,
    running_member,
)

PARTITIONS: Final = 6
BROKERS: Final = 3
MOST_MEMBERS: Final = 5
MOST_ROUNDS: Final = 8
PROTOCOL_LEVELS: Final = (4, 9, 11, 101, 102)
OLD_LATEST: Final = 101
"""The highest level of the older release, `native`."""


class LevelsWorld:
    """One run.

    Args:
        seed: seed of all random choices.
        steps: number of random actions.

    Attributes:
        events: all events, in order.
        log: the finalized levels.
        holds_back: the members hold the group back until a level is finalized.
    """

    def __init__(self, seed: int, *, steps: int) -> None:
        self.events: list[Event] = []
        self.log = GroupLog()
        self._rng = Scheduler(seed)
        self._step = 0
        self._steps = steps
        self._brokers = [self.log.last] * BROKERS
        self._stale: set[int] = set()
        self._members: dict[str, RunningMember] = {}
        self._leader = ""
        self._led: tuple[NodeSupport, ...] = ()
        self._starts = 0
        self._old_share = self._rng.choose((0.05, 0.2, 0.6))
        self.holds_back = self._rng.happens(0.5)
        for _ in range(self._rng.delay(2, 4)):
            self._start(self._release())
        self._rebalance()

    def run(self) -> None:
        """Do random actions, then let all brokers learn the levels, and all members adopt them."""
        actions = self._actions()
        for _ in range(self._steps):
            self._step += 1
            self._rng.choose(actions)()
        self._step += 1
        self._stale.clear()
        for broker in range(BROKERS):
            self._learn(broker)
        self._poll_all()
        self._rebalance()
        self._rebalance()
        self._record(EventKind.ENDED, levels=self.log.last, followers=self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(self._members))

    # Random actions

    def _actions(self) -> list[Callable[[], None]]:
        draw, often = self._rng, 3
        return [
            *[self._update] * often,
            *[lambda: self._learn(draw.delay(0, BROKERS - 1))] * often,
            *[lambda: self._poll(draw.choose(self._names))] * (2 * often),
            lambda: self._make_stale(draw.delay(0, BROKERS - 1)),
            lambda: self._stale.discard(draw.delay(0, BROKERS - 1)),
            self._join,
            self._leave,
            lambda: self._restart(draw.choose(self._names)),
            self._roll_back,
            self._deprecate,
            self._rebalance,
            lambda: self._other_leader(draw.choose(self._names)),
        ]

    def _update(self) -> None:
        """An operator asks for a level; refused ones change nothing."""
        feature = self._rng.choose((ASSIGNMENT_PROTOCOL, ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA))
        self._ask(
            feature,
            self._rng.choose(PROTOCOL_LEVELS if feature == ASSIGNMENT_PROTOCOL else (1, 2)),
        )

    def _ask(self, feature: str, level: int) -> None:
        """The operator requests a level; a refused update changes nothing."""
        nodes = tuple(
            NodeSupport(node_id=name, ranges=member_ranges(running.member.state.all_versions))
            for name, running in sorted(self._members.items())
        )
        known = max(
            (running.member.state.all_versions for running in self._members.values()), key=max
        )
        if why := self.log.update(feature, level, nodes, native_features(known)):
            self._record(EventKind.UPDATED, levels=self.log.last, why=why)

    def _learn(self, broker: int) -> None:
        if broker not in self._stale:
            self._brokers[broker] = self.log.last
            self._record(EventKind.LEARNED, f"b{broker}", self.log.last)

    def _make_stale(self, broker: int) -> None:
        self._stale.add(broker)
        self._record(EventKind.STALE, f"b{broker}", self._brokers[broker])

    def _poll(self, name: str) -> None:
        """A member polls its broker; the leader starts a rebalance for new levels."""
        running = self._members[name]
        polled = self._brokers[running.broker]
        self._record(EventKind.POLLED, name, polled)
        rejoin = running.poll(polled, leads=name == self._leader)
        if rejoin is not None:
            self._record(EventKind.ASKED, name, running.found, why=rejoin.why)
        if name == self._leader and self.log.raise_minimums(self._led):
            minimum = self.log.minimums.get(ASSIGNMENT_PROTOCOL, 0)
            self._record(EventKind.DEPRECATED, name, self.log.last, minimum=minimum)
        if rejoin is not None:
            self._rebalance()

    def _poll_all(self) -> None:
        for _ in range(2):  # twice: members that replace refused ones poll, too
            for name in self._names:
                if name in self._members:
                    self._poll(name)

    def _join(self) -> None:
        if len(self._members) < MOST_MEMBERS:
            self._start(self._release())
            self._rebalance()

    def _leave(self) -> None:
        if len(self._members) > 1:
            self._stop(self._rng.choose(self._names), EventKind.STOPPED)
            self._rebalance()

    def _restart(self, name: str, release: str = "") -> None:
        """Restart a member, perhaps on another release; it knows no levels."""
        if name in self._members:  # it may have been refused meanwhile
            self._stop(name, EventKind.STOPPED)
            self._start(release or self._release(), name=name)
        self._rebalance()

    def _roll_back(self) -> None:
        """Lower the protocol's level, bounce all members to the old release, and upgrade again.

        Only from a level that the old release does not support.
        """
        now = self.log.last.level_of(ASSIGNMENT_PROTOCOL)
        if now <= OLD_LATEST:
            return
        self._ask(ASSIGNMENT_PROTOCOL, self._rng.choose(PROTOCOL_LEVELS[:-1]))
        if self.log.last.level_of(ASSIGNMENT_PROTOCOL) > OLD_LATEST:
            return
        for broker in range(BROKERS):
            self._stale.discard(broker)
            self._learn(broker)
        self._poll_all()
        self._rebalance()
        self._record(EventKind.ROLLBACK_STARTED, levels=self.log.last, followers=self._names)
        for name in self._names:
            self._restart(name, "native")
        self._record(EventKind.ROLLBACK_DONE, levels=self.log.last, followers=self._names)
        for name in self._names:
            self._restart(name)

    def _deprecate(self) -> None:
        """Bounce all members to a release that supports the protocol from level 11 on."""
        if self.log.last.level_of(ASSIGNMENT_PROTOCOL) < LATER_FIRST:
            return
        for name in self._names:
            self._restart(name, LATER.name)
        self._poll(self._leader)

    def _other_leader(self, name: str) -> None:
        self._leader = name
        self._rebalance()

    # The group

    def _release(self) -> str:
        """Mostly of one release, or no level that it alone supports would ever be finalized."""
        return "native" if self._rng.happens(self._old_share) else "next"

    def _start(self, release: str, *, name: str | None = None) -> None:
        self._starts += 1
        name = name or f"m{self._starts}"
        running = running_member(
            release,
            number=self._starts,
            broker=self._rng.delay(0, BROKERS - 1),
            levels=HELD_BACK if self.holds_back else UNKNOWN_LEVELS,
        )
        self._members[name] = running
        self._leader = self._leader or name
        self._record(EventKind.STARTED, name, running.member.state.levels, why=release)

    def _stop(self, name: str, what: EventKind, why: str = "") -> None:
        levels = self._members.pop(name).member.state.levels
        if self._leader == name:
            self._leader = min(self._members, default="")
        self._record(what, name, levels, why=why)

    def _rebalance(self) -> None:
        """Run generations until no member wants another one; refused members are stopped."""
        for _ in range(MOST_ROUNDS):
            if not self._members:
                self._start("next")
            if not self._generation():
                return
        self._record(
            EventKind.REJOINED, self._leader, why=f"not stable after {MOST_ROUNDS} rebalances"
        )

    def _generation(self) -> bool:
        """Run one rebalance; return whether another one is due."""
        joining = len(self._members)
        blobs = self._written()
        if len(blobs) < joining:
            return True
        leader = self._members[self._leader].member
        state = leader.state
        answer = assign_group(
            LeaderSettings(
                release=program(self._members[self._leader].release),
                subtopologies=SUBTOPOLOGIES,
                config=AssignmentConfig(),
                strategy=sticky,
            ),
            blobs,
            {"lines": PARTITIONS},
            knowledge=LeaderKnowledge(levels=state.known_levels),
            held_view=leader.view,
        )
        self._led = generation_support(blobs)
        names = self._names
        self._record(EventKind.LED, self._leader, state.levels, followers=names)
        answers = answer.answers
        again = [self._take(n, answers[n].partitions, answers[n].user_data) for n in names]
        return any(again)

    def _written(self) -> list[GroupMember]:
        blobs = []
        for name in self._names:
            running = self._members[name]
            running.member.levels_polled(running.found)
            try:
                value, data = running.member.subscription()
            except MemberRefused as refused:
                self._stop(name, EventKind.REFUSED, str(refused))
                continue
            levels = running.member.state.levels
            self._record(EventKind.WROTE, name, levels, version=value.version)
            blobs.append(GroupMember(member_id=name, user_data=data))
        return blobs

    def _take(self, name: str, partitions: tuple[TopicPartition, ...], user_data: bytes) -> bool:
        member = self._members[name].member
        received = member.receive(partitions, user_data, now_ms=0)
        if received.failure:
            self._stop(name, EventKind.REFUSED, received.failure)
            return True
        tasks = tuple(sorted(str(task) for task in member.held.active))
        self._record(EventKind.FOLLOWED, name, member.state.levels, tasks=tasks)
        rejoins = [command for command in received.commands if isinstance(command, RejoinNow)]
        for rejoin in rejoins:
            self._record(
                EventKind.REJOINED, name, member.state.levels, why=f"{rejoin.rule}: {rejoin.why}"
            )
        return bool(rejoins)

    def _record(
        self,
        what: EventKind,
        subject: str = "",
        levels: FinalizedLevels = UNKNOWN_LEVELS,
        **details: Any,
    ) -> None:
        event = Event(step=self._step, what=what, subject=subject, levels=levels, **details)
        self.events.append(event)
