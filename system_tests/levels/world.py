"""A group of ours, the log of its levels, and brokers that hear of a level late or not at all.

Members and leaders are the real ones and exchange real bytes; what an operator asks for is decided
by the real table. A step is one thing that happens; what follows from it is in `seen`, which the
checkers judge. Every member looks for levels at one broker; brokers may be stale as long as they
like, members forget everything when they are started anew, and any member may come to lead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
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
from encoding import TopicPartition
from probing import HELD_BACK, RejoinNow, find_release, member_ranges
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    PERSISTENT_METADATA,
    UNKNOWN_LEVELS,
    ControllerView,
    FeatureUpdate,
    FinalizedLevels,
    NodeSupport,
    UpdateKind,
    UpdateRequest,
    decide_update,
    native_features,
)
from system_tests.sim import Scheduler

PARTITIONS: Final = 6
BROKERS: Final = 3
MOST_MEMBERS: Final = 5
MOST_ROUNDS: Final = 8
PROTOCOL_LEVELS: Final = (4, 9, 11, 101, 102)
_TOPOLOGY: Final = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
)


class What(StrEnum):
    """What can happen."""

    STARTED = "started"
    STOPPED = "stopped"
    REFUSED = "refused"
    WROTE = "wrote"
    LED = "led"
    FOLLOWED = "followed"
    REJOINED = "rejoined"
    UPDATED = "updated"
    LEARNED = "learned"
    STALE = "stale"
    LOOKED = "looked"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One thing that happened.

    Attributes:
        step: of the run, from 1.
        what: which kind of thing.
        who: the member, `b0` to `b2` for a broker, or "" for the operator.
        levels: what the member, broker or operator goes by afterwards.
        version: that was written.
        tasks: active tasks that the member follows to.
        followers: members of the rebalance, for `LED`.
        why: a sentence of whoever decided.
    """

    step: int
    what: What
    who: str = ""
    levels: FinalizedLevels = UNKNOWN_LEVELS
    version: int = 0
    tasks: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    why: str = ""


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
        log: every state of the levels that was ever finalized, by epoch.
        holds_back: the members hold the group back until a level is finalized.
    """

    def __init__(self, seed: int, *, steps: int) -> None:
        self.seen: list[Seen] = []
        self.log: list[FinalizedLevels] = [FinalizedLevels()]
        self._dice = Scheduler(seed)
        self._step = 0
        self._steps = steps
        self._brokers = [self.log[0]] * BROKERS
        self._stale: set[int] = set()
        self._lives: dict[str, _Life] = {}
        self._leader = ""
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
        self._see(What.ENDED, levels=self.log[-1], followers=tuple(sorted(self._lives)))

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
            self._restart,
            self._rebalance,
            lambda: self._other_leader(draw.choose(sorted(self._lives))),
        ]

    def _update(self) -> None:
        """An operator asks for a level; refused ones change nothing."""
        feature = self._dice.choose((ASSIGNMENT_PROTOCOL, ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA))
        level = self._dice.choose(PROTOCOL_LEVELS if feature == ASSIGNMENT_PROTOCOL else (1, 2))
        lower = level < self.log[-1].level_of(feature)
        update = FeatureUpdate(
            feature=feature,
            level=level,
            kind=UpdateKind.SAFE_DOWNGRADE if lower else UpdateKind.UPGRADE,
        )
        outcome = decide_update(self._view(), UpdateRequest(updates=(update,)))
        if outcome.ok and outcome.records:
            self.log.append(outcome.finalized)
            self._see(What.UPDATED, levels=outcome.finalized, why=outcome.results[0].why)

    def _view(self) -> ControllerView:
        nodes = tuple(
            NodeSupport(node_id=name, ranges=member_ranges(life.member.state.all_versions))
            for name, life in sorted(self._lives.items())
        )
        known = max((life.member.state.all_versions for life in self._lives.values()), key=max)
        return ControllerView(table=native_features(known), finalized=self.log[-1], nodes=nodes)

    def _learn(self, broker: int) -> None:
        if broker not in self._stale:
            self._brokers[broker] = self.log[-1]
            self._see(What.LEARNED, f"b{broker}", self.log[-1])

    def _make_stale(self, broker: int) -> None:
        self._stale.add(broker)
        self._see(What.STALE, f"b{broker}", self._brokers[broker])

    def _look(self, name: str) -> None:
        """A member asks its broker; the leader starts a rebalance for news."""
        life = self._lives[name]
        rejoin = life.member.levels_polled(self._brokers[life.broker], leads=name == self._leader)
        self._see(What.LOOKED, name, self._brokers[life.broker])
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

    def _restart(self) -> None:
        """A bounce: the member comes back, perhaps on another release, and has forgotten all."""
        name = self._dice.choose(sorted(self._lives))
        self._stop(name, What.STOPPED)
        self._start(self._release(), name=name)
        self._rebalance()

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
            find_release(release),
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
                release=find_release(self._lives[self._leader].release),
                subtopologies=_TOPOLOGY.subtopologies("app"),
                config=AssignmentConfig(),
                strategy=sticky,
            ),
            blobs,
            {"lines": PARTITIONS},
            knowledge=LeaderKnowledge(levels=state.known_levels),
            held_view=leader.view,
        )
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
                why=why,
            )
        )
