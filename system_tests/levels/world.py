"""A group of ours, the log of its levels, and brokers that hear of a level late or not at all.

Members and leaders are the real ones and exchange real bytes; what an operator asks for is decided
by the real table. A step is one thing that happens; what follows from it is in `seen`, which the
checkers judge. Every member looks for levels at one broker; brokers may be stale as long as they
like, members forget everything when they are started anew, and any member may come to lead.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    MemberRefused,
    StreamsMember,
    Topology,
    assign_group,
    sticky,
)
from assignor.levels import generation_support
from encoding import TopicPartition
from probing import HELD_BACK, RejoinNow, Release, find_release, member_ranges
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    PERSISTENT_METADATA,
    UNKNOWN_LEVELS,
    FinalizedLevels,
    NodeSupport,
    native_features,
)
from system_tests.levels.log import GroupLog
from system_tests.levels.seen import Seen, What
from system_tests.sim import Scheduler

PARTITIONS: Final = 6
BROKERS: Final = 3
MOST_MEMBERS: Final = 5
MOST_ROUNDS: Final = 8
PROTOCOL_LEVELS: Final = (4, 9, 11, 101, 102)
OLD_LATEST: Final = 101
"""The highest level of the older program, `native`."""
LATER_FIRST: Final = 11
LATER: Final = replace(
    find_release("next"), name="later", known_versions=(LATER_FIRST,), latest_version=LATER_FIRST
)
"""A program after `next` that no longer supports the first levels of the protocol."""

_TOPOLOGY: Final = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
)


@dataclass(slots=True, kw_only=True)
class _Life:
    """One member from its start to its end."""

    member: StreamsMember
    release: str
    broker: int


class LevelsWorld:
    """One run.

    Args:
        seed: of everything that is drawn.
        steps: how many things happen before the world calms down.

    Attributes:
        seen: everything, in order.
        log: every state of the levels that was ever finalized.
        holds_back: the members hold the group back until a level is finalized.
    """

    def __init__(self, seed: int, *, steps: int) -> None:
        self.seen: list[Seen] = []
        self.log = GroupLog()
        self._dice = Scheduler(seed)
        self._step = 0
        self._steps = steps
        self._brokers = [self.log.last] * BROKERS
        self._stale: set[int] = set()
        self._lives: dict[str, _Life] = {}
        self._leader = ""
        self._led: tuple[NodeSupport, ...] = ()
        self._born = 0
        self._old_share = self._dice.choose((0.05, 0.2, 0.6))
        self.holds_back = self._dice.happens(0.5)
        for _ in range(self._dice.delay(2, 4)):
            self._start(self._release())
        self._rebalance()

    def run(self) -> None:
        """Let everything happen, then calm down: all brokers know, the leader looks, all write."""
        actions = self._actions()
        for _ in range(self._steps):
            self._step += 1
            self._dice.choose(actions)()
        self._step += 1
        self._stale.clear()
        for broker in range(BROKERS):
            self._learn(broker)
        for _ in range(2):  # those who come in place of the refused look as well
            for name in sorted(self._lives):
                if name in self._lives:
                    self._look(name)
        self._rebalance()
        self._rebalance()
        self._see(What.ENDED, levels=self.log.last, followers=tuple(sorted(self._lives)))

    # Things that happen

    def _actions(self) -> list[Callable[[], None]]:
        draw, often = self._dice, 3
        return [
            *[self._update] * often,
            *[lambda: self._learn(draw.delay(0, BROKERS - 1))] * often,
            *[lambda: self._look(draw.choose(sorted(self._lives)))] * (2 * often),
            lambda: self._make_stale(draw.delay(0, BROKERS - 1)),
            lambda: self._stale.discard(draw.delay(0, BROKERS - 1)),
            self._join,
            self._leave,
            lambda: self._restart(draw.choose(sorted(self._lives))),
            self._take_back,
            self._deprecate,
            self._rebalance,
            lambda: self._other_leader(draw.choose(sorted(self._lives))),
        ]

    def _update(self) -> None:
        """An operator asks for a level; refused ones change nothing."""
        feature = self._dice.choose((ASSIGNMENT_PROTOCOL, ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA))
        self._ask(
            feature,
            self._dice.choose(PROTOCOL_LEVELS if feature == ASSIGNMENT_PROTOCOL else (1, 2)),
        )

    def _ask(self, feature: str, level: int) -> None:
        """Let the operator ask; a refused update changes nothing."""
        nodes = tuple(
            NodeSupport(node_id=name, ranges=member_ranges(life.member.state.all_versions))
            for name, life in sorted(self._lives.items())
        )
        known = max((life.member.state.all_versions for life in self._lives.values()), key=max)
        if why := self.log.ask(feature, level, nodes, native_features(known)):
            self._see(What.UPDATED, levels=self.log.last, why=why)

    def _learn(self, broker: int) -> None:
        if broker not in self._stale:
            self._brokers[broker] = self.log.last
            self._see(What.LEARNED, f"b{broker}", self.log.last)

    def _make_stale(self, broker: int) -> None:
        self._stale.add(broker)
        self._see(What.STALE, f"b{broker}", self._brokers[broker])

    def _look(self, name: str) -> None:
        """A member asks its broker; the leader starts a rebalance for news."""
        life = self._lives[name]
        rejoin = life.member.levels_polled(self._brokers[life.broker], leads=name == self._leader)
        self._see(What.LOOKED, name, self._brokers[life.broker])
        if name == self._leader and self.log.raise_minimums(self._led):
            minimum = self.log.minimums.get(ASSIGNMENT_PROTOCOL, 0)
            self._see(What.DEPRECATED, name, self.log.last, minimum=minimum)
        if rejoin is not None:
            self._rebalance()

    def _join(self) -> None:
        if len(self._lives) < MOST_MEMBERS:
            self._start(self._release())
            self._rebalance()

    def _leave(self) -> None:
        if len(self._lives) > 1:
            self._stop(self._dice.choose(sorted(self._lives)), What.STOPPED)
            self._rebalance()

    def _restart(self, name: str, release: str = "") -> None:
        """A bounce: the member comes back, perhaps on another release, and has forgotten all."""
        if name in self._lives:  # on the way of several it may have been refused
            self._stop(name, What.STOPPED)
            self._start(release or self._release(), name=name)
        self._rebalance()

    def _take_back(self) -> None:
        """An operator lowers the protocol, waits for the group, and bounces it to the old program.

        Only from a level that the old program lacks. Later the members come up again, one by one.
        """
        now = self.log.last.level_of(ASSIGNMENT_PROTOCOL)
        if now <= OLD_LATEST:
            return
        self._ask(ASSIGNMENT_PROTOCOL, self._dice.choose(PROTOCOL_LEVELS[:-1]))
        if self.log.last.level_of(ASSIGNMENT_PROTOCOL) > OLD_LATEST:
            return
        for broker in range(BROKERS):
            self._stale.discard(broker)
            self._learn(broker)
        for _ in range(2):  # those who come in place of the refused look as well
            for name in sorted(self._lives):
                if name in self._lives:
                    self._look(name)
        self._rebalance()
        self._see(What.GOES_BACK, levels=self.log.last, followers=tuple(sorted(self._lives)))
        for name in sorted(self._lives):
            self._restart(name, "native")
        self._see(What.WENT_BACK, levels=self.log.last, followers=tuple(sorted(self._lives)))
        for name in sorted(self._lives):
            self._restart(name)

    def _deprecate(self) -> None:
        """The members are bounced to a program that supports the protocol from 11 on only."""
        if self.log.last.level_of(ASSIGNMENT_PROTOCOL) < LATER_FIRST:
            return
        for name in sorted(self._lives):
            self._restart(name, LATER.name)
        self._look(self._leader)

    def _other_leader(self, name: str) -> None:
        self._leader = name
        self._rebalance()

    # The group

    def _release(self) -> str:
        """Mostly of one release, or no level that it alone supports would ever be finalized."""
        return "native" if self._dice.happens(self._old_share) else "next"

    def _start(self, release: str, *, name: str | None = None) -> None:
        self._born += 1
        name = name or f"m{self._born}"
        member = StreamsMember(
            _program(release),
            MemberIdentity(process_id=UUID(int=self._born)),
            subtopologies=_TOPOLOGY.subtopologies("app"),
            levels=HELD_BACK if self.holds_back else UNKNOWN_LEVELS,
        )
        self._lives[name] = _Life(
            member=member, release=release, broker=self._dice.delay(0, BROKERS - 1)
        )
        self._leader = self._leader or name
        self._see(What.STARTED, name, member.state.levels, why=release)

    def _stop(self, name: str, what: What, why: str = "") -> None:
        levels = self._lives.pop(name).member.state.levels
        if self._leader == name:
            self._leader = min(self._lives, default="")
        self._see(what, name, levels, why=why)

    def _rebalance(self) -> None:
        """Generations until nobody wants another one; who is refused leaves, and it starts anew."""
        for _ in range(MOST_ROUNDS):
            if not self._lives:
                self._start("next")
            if not self._generation():
                return
        self._see(What.REJOINED, self._leader, why=f"no end after {MOST_ROUNDS} rebalances")

    def _generation(self) -> bool:
        """One rebalance; whether another is due."""
        joining = len(self._lives)
        blobs = self._written()
        if len(blobs) < joining:
            return True
        leader = self._lives[self._leader].member
        state = leader.state
        answer = assign_group(
            LeaderSettings(
                release=_program(self._lives[self._leader].release),
                subtopologies=_TOPOLOGY.subtopologies("app"),
                config=AssignmentConfig(),
                strategy=sticky,
            ),
            blobs,
            {"lines": PARTITIONS},
            knowledge=LeaderKnowledge(levels=state.known_levels),
            held_view=leader.view,
        )
        self._led = generation_support(blobs)
        names = tuple(sorted(self._lives))
        self._see(What.LED, self._leader, state.levels, followers=names)
        told = answer.answers
        again = [self._take(n, told[n].partitions, told[n].user_data) for n in names]
        return any(again)

    def _written(self) -> list[GroupMember]:
        blobs = []
        for name in sorted(self._lives):
            try:
                value, data = self._lives[name].member.subscription()
            except MemberRefused as refused:
                self._stop(name, What.REFUSED, str(refused))
                continue
            levels = self._lives[name].member.state.levels
            self._see(What.WROTE, name, levels, version=value.version)
            blobs.append(GroupMember(member_id=name, user_data=data))
        return blobs

    def _take(self, name: str, partitions: tuple[TopicPartition, ...], user_data: bytes) -> bool:
        member = self._lives[name].member
        received = member.receive(partitions, user_data, now_ms=0)
        if received.failure:
            self._stop(name, What.REFUSED, received.failure)
            return True
        tasks = tuple(sorted(str(task) for task in member.held.active))
        self._see(What.FOLLOWED, name, member.state.levels, tasks=tasks)
        rejoins = [one for one in received.commands if isinstance(one, RejoinNow)]
        for rejoin in rejoins:
            self._see(What.REJOINED, name, member.state.levels, why=f"{rejoin.rule}: {rejoin.why}")
        return bool(rejoins)

    def _see(
        self,
        what: What,
        who: str = "",
        levels: FinalizedLevels = UNKNOWN_LEVELS,
        *,
        version: int = 0,
        tasks: tuple[str, ...] = (),
        followers: tuple[str, ...] = (),
        minimum: int = 0,
        why: str = "",
    ) -> None:
        self.seen.append(
            Seen(
                step=self._step,
                what=what,
                who=who,
                levels=levels,
                version=version,
                tasks=tasks,
                followers=followers,
                minimum=minimum,
                why=why,
            )
        )


def _program(name: str) -> Release:
    return LATER if name == LATER.name else find_release(name)
