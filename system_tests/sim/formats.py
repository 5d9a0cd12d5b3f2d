"""A rolling bounce that raises `persistent.metadata.version`, in simulated time (KIP-384).

Members keep state directories and share one internal topic. One after the other is stopped and
started with the raised setting; members crash and come back with the setting they had, leadership
goes where it likes, and an operator may try to go back. What happens is a row of `Seen`, and
`check_formats` judges it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from probing import (
    PersistedDecision,
    PersistedNumbers,
    PersistedSettings,
    Written,
    decide_persistent_version,
)
from system_tests.sim.scheduler import Scheduler

OLD: Final = 1
NEW: Final = 2
_STEP_MS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One thing that happened to one member.

    Attributes:
        at_ms: when.
        kind: `start`, `refused` (it did not start), `stop`, `write`.
        member: to whom.
        setting: its own.
        version: what it writes, 0 where it does not run.
        leader: the leader's version at that moment, 0 for the leader itself and outside a group.
        rule: of the decision.
    """

    at_ms: int
    kind: str
    member: str
    setting: int
    version: int = 0
    leader: int = 0
    rule: str = ""


@dataclass(slots=True, kw_only=True)
class _Member:
    name: str
    setting: int = OLD
    written: Written | None = None
    is_up: bool = False


@dataclass(slots=True, kw_only=True)
class FormatsWorld:
    """A group in the middle of the roll.

    Attributes:
        scheduler: clock and dice.
        seen: everything that happened.
    """

    scheduler: Scheduler
    members: list[_Member]
    seen: list[Seen] = field(default_factory=list)

    def start(self, member: _Member, setting: int) -> bool:
        """Start a member with a setting; tells whether it runs."""
        decision = self._decide(member, setting=setting, leader=None)
        kind = "refused" if decision.is_refused else "start"
        self._say(kind, member, setting=setting, decision=decision)
        member.is_up = not decision.is_refused
        if member.is_up:
            member.setting = setting
        return member.is_up

    def stop(self, member: _Member) -> None:
        """Stop or kill a member; what it wrote stays."""
        member.is_up = False
        self._say("stop", member, setting=member.setting)

    def rebalance(self) -> None:
        """One of those that run leads and writes; the others write as it does."""
        running = [member for member in self.members if member.is_up]
        if not running:
            return
        leader = self.scheduler.choose(running)
        wrote = self._write(leader, leader_version=None)
        for member in self.scheduler.shuffled(running):
            if member is not leader:
                self._write(member, leader_version=wrote)

    def _write(self, member: _Member, *, leader_version: int | None) -> int:
        decision = self._decide(member, setting=member.setting, leader=leader_version)
        version = decision.version or 0
        before = member.written or Written(version=0, at_ms=self.scheduler.now_ms, setting=0)
        member.written = Written(
            version=max(before.version, version),
            at_ms=self.scheduler.now_ms if version > before.version else before.at_ms,
            setting=max(before.setting or 0, member.setting),
        )
        self._say(
            "write",
            member,
            setting=member.setting,
            decision=decision,
            leader=leader_version or 0,
        )
        return version

    @staticmethod
    def _decide(member: _Member, *, setting: int, leader: int | None) -> PersistedDecision:
        return decide_persistent_version(
            PersistedNumbers(
                settings=PersistedSettings(persistent_metadata_version=setting),
                written=member.written,
                leader_version=leader,
            )
        )

    def _say(
        self,
        kind: str,
        member: _Member,
        *,
        setting: int,
        decision: PersistedDecision | None = None,
        leader: int = 0,
    ) -> None:
        self.seen.append(
            Seen(
                at_ms=self.scheduler.now_ms,
                kind=kind,
                member=member.name,
                setting=setting,
                version=0 if decision is None else decision.version or 0,
                leader=leader,
                rule="" if decision is None else decision.rule,
            )
        )


def roll_formats(seed: int, *, members: int = 4) -> tuple[Seen, ...]:
    """Roll a group from the old to the new persistent version, with crashes and second thoughts.

    Args:
        seed: of the dice; equal seeds give equal rows.
        members: of the group.
    """
    scheduler = Scheduler(seed)
    crew = [_Member(name=f"m{number}") for number in range(members)]
    world = FormatsWorld(scheduler=scheduler, members=crew)
    for member in crew:
        world.start(member, OLD)
    world.rebalance()
    for member in scheduler.shuffled(crew):
        for _ in range(scheduler.delay(0, 2)):
            _trouble(world, scheduler.choose(crew))
        world.stop(member)
        world.rebalance()
        world.start(member, NEW)
        scheduler.now_ms += scheduler.delay(1, _STEP_MS)
        world.rebalance()
        if scheduler.happens(0.3):
            # Second thoughts; where it was written there is no way back.
            world.stop(member)
            if world.start(member, OLD):
                world.stop(member)
            world.start(member, NEW)
    for _ in range(members):
        world.rebalance()
    return tuple(world.seen)


def _trouble(world: FormatsWorld, member: _Member) -> None:
    """Crash a member, and start it again as it was."""
    world.stop(member)
    world.scheduler.now_ms += 1
    world.rebalance()
    world.start(member, member.setting)
    world.rebalance()


def check_formats(seen: Iterable[Seen]) -> tuple[str, ...]:
    """Return a sentence for every rule that was broken.

    Followers write as the leader does, or what they wrote before; nobody goes back; a member is
    refused only for a setting below one that it wrote under; in the end all write the new version.
    """
    rows = tuple(seen)
    return (*_followers(rows), *_never_back(rows), *_refused(rows), *_arrived(rows))


def _followers(rows: tuple[Seen, ...]) -> Iterator[str]:
    before: dict[str, int] = {}
    for row in rows:
        if row.kind != "write":
            continue
        wanted = max(row.leader or row.setting, before.get(row.member, 0))
        if row.version != wanted:
            yield f"{row.at_ms} {row.member} writes {row.version}, not {wanted}"
        before[row.member] = max(row.version, before.get(row.member, 0))


def _never_back(rows: tuple[Seen, ...]) -> Iterator[str]:
    before: dict[str, int] = {}
    for row in rows:
        if row.kind == "write" and row.version < before.get(row.member, 0):
            yield f"{row.at_ms} {row.member} goes back from {before[row.member]} to {row.version}"
        if row.kind == "write":
            before[row.member] = row.version


def _refused(rows: tuple[Seen, ...]) -> Iterator[str]:
    under: dict[str, int] = {}
    for row in rows:
        is_back = row.setting < under.get(row.member, 0)
        if row.kind in ("start", "refused") and is_back != (row.kind == "refused"):
            yield f"{row.at_ms} {row.member} {row.kind} with {row.setting} ({row.rule})"
        if row.kind == "write":
            under[row.member] = max(row.setting, under.get(row.member, 0))


def _arrived(rows: tuple[Seen, ...]) -> Iterator[str]:
    last = {row.member: row.version for row in rows if row.kind == "write"}
    for member, version in sorted(last.items()):
        if version != NEW:
            yield f"{member} still writes {version}"
