"""The bounces that run without one rule, and why no bounce needs some of the rules."""

from dataclasses import dataclass
from typing import Any, Final

from system_tests.sim import World, WorldSetup, check_trace
from system_tests.sim.events import Settled, Unsettled
from system_tests.sim.liveness import check_resting_versions, check_settles

SEEDS: Final = range(4)
SETTLE_MS: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounce:
    """One process stops and starts; with `wait_ms`, the next step follows after this time."""

    who: str
    release: str
    upgrade_from: str | None = None
    wait_ms: int | None = None

    def __str__(self) -> str:
        """A step of a runbook."""
        done = f"bounce {self.who} to {_started(self.release, self.upgrade_from)}"
        return done if self.wait_ms is None else f"{done}, go on after {self.wait_ms} ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """Steps for which `simulate` has no options: a group with a setting, and single bounces.

    Attributes:
        old: release of all members at first; upgrade_from: their setting.
        steps: the bounces, in order.
        lead: lanes that the coordinator chooses as leader whenever possible.
        ends: the version that all members write at the end; 0: any.
    """

    old: str
    upgrade_from: str | None = None
    steps: tuple[Bounce, ...]
    lead: str = ""
    ends: int = 0

    def __str__(self) -> str:
        """The runbook in one line."""
        lead = (f"{self.lead} leads if it can",) if self.lead else ()
        begin = f"a, b and c on {_started(self.old, self.upgrade_from)}"
        return "; ".join((begin, *lead, *map(str, self.steps)))

    def broken(self) -> set[str]:
        """Names of the rules that it breaks."""
        world = World(WorldSetup(seed=1, processes=3))
        world.member_ids.next_leaders = tuple(self.lead)
        for process in range(3):
            world.start(process, self.old, self.upgrade_from)
        _settle(world)
        for step in self.steps:
            process = ord(step.who) - ord("a")
            world.stop(process)
            world.run_for(1_000)
            world.start(process, step.release, step.upgrade_from)
            if step.wait_ms is None:
                _settle(world)
            else:
                world.run_for(step.wait_ms)
        broken = check_trace(world.trace, world.task_of) + check_settles(world.trace)
        if self.ends:
            broken += check_resting_versions(world.trace, (self.ends,))
        return {violation.rule for violation in broken}


def _started(release: str, upgrade_from: str | None) -> str:
    return f"{release} with upgrade.from={upgrade_from}" if upgrade_from else release


def _settle(world: World) -> None:
    if world.run(until=world.is_settled, within_ms=SETTLE_MS):
        used = tuple((t.name, t.streams.state.used_version) for t in world.threads if t.is_up)
        world.record(Settled(world.now_ms, 0, "", used))
    else:
        world.record(Unsettled(world.now_ms, SETTLE_MS, "a member is not at rest"))


def _all(pairs: str, **options: Any) -> list[dict[str, Any]]:
    return [
        {"old": old, "new": new, **options}
        for old, new in (pair.split(">") for pair in pairs.split())
    ]


BOUNCES: Final[list[dict[str, Any]]] = [
    # below version probing: pinned, and what happens without the pin
    *_all("0.10.0.1>0.10.2.2 0.10.0.1>2.3.1 0.10.2.1>1.1.1 0.10.2.1>2.0.1 1.1.1>2.3.1 1.1.1>3.9.1"),
    *_all("1.1.1>native 0.10.0.1>native"),
    *_all("0.10.0.1>0.10.1.1 0.10.0.1>1.1.1 1.1.1>2.3.1 1.1.1>3.9.1 1.1.1>native", force=True),
    *_all("2.3.1>1.1.1 2.6.3>1.1.1 3.9.1>1.1.1 native>1.1.1", force=True),
    # version probing under every leader model
    *_all("2.0.1>2.3.1 2.1.1>2.3.0 2.3.1>2.0.1 2.0.1>native native>2.0.1 native>2.3.1"),
    *_all("2.0.1>2.3.0 2.1.1>2.5.1 2.3.0>2.4.1 2.5.1>2.3.1 3.9.1>2.3.0 2.0.1>3.9.1", force=True),
    *_all("2.3.1>3.9.1 2.4.1>2.5.1 2.5.1>2.4.1 2.4.1>2.6.3 2.6.3>2.8.2 2.8.2>3.9.1 3.9.1>2.8.2"),
    *_all("2.0.1-text>2.3.1-text 2.3.1-text>2.0.1-text"),
    # native members alone, and beside JVM members
    *_all("2.8.2>native 3.1.2>native native>3.1.2 native>2.8.2 3.9.1>next next>3.1.2"),
    *_all("native>next next>native native>incompatible incompatible>native next>incompatible"),
    # static members, which can get their assignment from before the restart; several threads
    *_all("3.9.1>2.8.2 2.8.2>3.9.1 2.5.1>2.8.2 native>next", static=True),
    *_all("next>native incompatible>native native>2.8.2", static=True, force=True),
    *_all("2.3.1>2.4.1 2.4.1>2.5.1 2.8.2>3.9.1 3.1.2>native", threads=2, force=True),
    # messages lost, members killed
    *_all(
        "2.8.2>3.9.1 3.1.2>native native>incompatible",
        faults=frozenset({"crash", "delay", "drop", "leader"}),
    ),
]
"""Options of `simulate`; each runs with every seed."""


def _runbook(old: str, steps: str, *, lead: str = "", ends: int = 0) -> Runbook:
    """Read a short form: "2.8.2/1.1" pins, "a>native" bounces, "+150" goes on after 150 ms."""
    read = []
    for step in steps.split():
        who, _, program = step.partition(">")
        program, _, wait_ms = program.partition("+")
        release, _, pin = program.partition("/")
        read.append(
            Bounce(
                who=who,
                release=release,
                upgrade_from=pin or None,
                wait_ms=int(wait_ms) if wait_ms else None,
            )
        )
    release, _, pin = old.partition("/")
    return Runbook(old=release, upgrade_from=pin or None, steps=tuple(read), lead=lead, ends=ends)


PINNED_BESIDE_1_1: Final = _runbook("1.1.1", "a>native/1.1 b>native/1.1 a>native/1.1", lead="ac")
"""A native member leads a pinned native member; then a JVM leads that reads nothing above 2."""

RUNBOOKS: Final = (
    # a member writes a version above the leader's, another one version 1 or 2
    _runbook("2.8.2/1.1", "a>3.9.1"),
    _runbook("2.8.2/1.1", "c>3.9.1 a>2.8.2"),
    _runbook("2.6.3/1.1", "a>3.9.1 c>native"),
    _runbook("2.8.2/1.1", "a>native b>native"),
    _runbook("2.4.1/1.1", "c>native b>3.9.1"),
    _runbook("2.0.1/1.1", "c>2.1.1"),
    # a leader that always answers in version 2
    _runbook("0.10.1.1", "c>2.0.1/0.10.0"),
    _runbook("0.10.1.1", "c>2.3.1/0.10.0 b>native/0.10.0"),
    _runbook("0.10.1.1", "c>native/0.10.0 b>3.9.1/0.10.0"),
    _runbook("0.10.1.1", "c>2.3.1/0.10.0"),
    _runbook("0.10.1.1", "c>native/0.10.0"),
    # a native member under a JVM leader that raises all members
    _runbook("2.8.2", "b>native c>3.9.1 a>3.9.1", lead="ca", ends=11),
    _runbook("2.8.2", "b>native a>3.9.1 c>3.9.1", lead="ac", ends=11),
    # pinned native members beside JVM members with and without a pin
    _runbook("native/1.1", "a>native b>native"),
    _runbook("native/1.1", "c>3.9.1 a>native"),
    _runbook("native", "c>native/1.1 a>3.9.1/1.1"),
    _runbook("native", "c>3.9.1/1.1 b>2.8.2/1.1"),
    _runbook("native", "a>native c>2.8.2/1.1 a>2.8.2/1.1", lead="ca"),
    _runbook("3.9.1/1.1", "a>native b>native"),
    PINNED_BESIDE_1_1,
    # three releases at once
    _runbook("native", "a>next b>incompatible"),
    _runbook("incompatible", "a>native b>next"),
    _runbook("incompatible", "c>native a>2.8.2"),
    _runbook("next", "b>2.8.2 c>native"),
    _runbook("2.8.2", "b>native c>2.3.1"),
    _runbook("2.3.1", "b>native c>2.0.1"),
    _runbook("2.3.0", "b>2.3.1 c>2.0.1"),
    # a native member leads others that write a later version, before they know the leader
    _runbook("next", "b>next c>next a>native+150 c>native", lead="ab"),
    _runbook("next", "a>next c>next b>native+150 a>native", lead="ba"),
    _runbook("incompatible", "b>incompatible c>incompatible a>native+150 c>native", lead="ab"),
    _runbook("incompatible", "a>incompatible c>incompatible b>native+150 a>native", lead="ba"),
)
"""Further runs, each with one seed."""


_G, _T = "member, guarded, tasks kept, follow-up, follow-up waits", "member, text of KIP-268"
_N, _A = "member, native", "leader, answers to native members"
_DEAD = "bytes that cannot be decoded end a Kafka member before the table is used"
_SAME = "a later row has the same outcome with another sentence"
_TEXT = "the model of the text runs between 2.0 and 2.3 only, where no leader gives such an answer"
HARMLESS: Final[dict[str, str]] = {
    "member, no probing: unreadable answer": _DEAD,
    "member, unguarded: unreadable answer": _DEAD,
    "member, unguarded: error answer": "only leaders from 2.7 on send errors, in a version that"
    " these members cannot read",
    f"{_G}: unreadable answer": _DEAD,
    f"{_G}: agreed above the latest known version": (
        "no leader that answers with its own number knows more than 4, which these members know;"
        " a guard against KAFKA-8649 that no release needs"
    ),
    f"{_G}: others still write lower": "the next row writes the same version, and rejoins as well",
    f"{_N}: a later JVM leads": "no JVM writes a version above 11 yet; tests/probing has one of 12",
    f"{_N}: unreadable answer": (
        "a native leader answers in the version that was written; after undecodable bytes a member"
        " rejoins regardless of the table"
    ),
    f"{_N}: error answer": (
        "the same answer ends the JVM members; without the row the member does not report it,"
        " which tests/probing finds"
    ),
    f"{_N}: pin stays": (
        "a native leader names the pin to a pinned member (row 'pinned' of the next version); one"
        " of the two rows is enough"
    ),
    f"{_N}: too old to probe": (
        "the member lowers its version to 1 or 2, and a native leader raises it again: one more"
        " rebalance, within the bound"
    ),
    f"{_N}: unusable second number": (
        "no leader of the release table names a second number below the version of its answer"
    ),
    f"{_N}: others still write lower": "the next row writes the same version, and rejoins as well",
    f"{_T}: unreadable answer": _TEXT,
    f"{_T}: answered above what was sent": _TEXT,
    f"{_T}: too old to probe": "no member is pinned between 2.0 and 2.3",
    f"{_T}: leader ends the upgrade": (
        "all members write the new version at the next rebalance anyway; tests/system_tests/sim"
        " counts the missing rebalance"
    ),
    f"{_T}: raised at the next rebalance": (
        "the leader's last rebalance raises it anyway; tests/system_tests/sim counts the extra"
        " rebalance"
    ),
    "member, follow-ups: host is missing": "no member of these bounces serves queries;"
    " tests/assignor has one that does",
    "member, follow-ups: tasks wait to be revoked": (
        "a follow-up at 0 ms: the next row rejoins at once, too"
    ),
    "member, follow-ups: follow-up was asked for": (
        "without the follow-up a warmed-up task stays where it is, which breaks no rule;"
        " tests/probing checks it"
    ),
    "leader: natives only (native)": "native members are answered separately under any row",
    "leader: a member writes version 1 or 2 (all)": _SAME,
    "leader: empty answer to future members, own number (empty, own number)": (
        "they get tasks, as from 2.4 on, and lower their version anyway"
    ),
    "leader: separate tasks for future members (separate tasks)": (
        "all members get new tasks, as from 2.6 on"
    ),
    "leader: empty answer to future members, by the text (text of KIP-268)": (
        "they get tasks, as from 2.4 on, and lower their version anyway"
    ),
    "leader: future members answered in the lowest version (native, normal, or dead, normal, or"
    " error)": _SAME,
    f"{_A}: native body that cannot be read": "the last row gives the same version",
    f"{_A}: native member in the version it wrote": "the last row gives the same version",
    "leader, next version of native members: pinned": (
        "a pinned member ignores the named version (row 'pin stays'); one of the two rows is enough"
    ),
    "leader, next version of native members: as far as the JVM members go": (
        "a JVM that leads next makes members at 101 probe: one more rebalance, within Kafka's"
        " bound; tests/probing counts it"
    ),
}
"""Rule -> why no bounce or runbook needs it."""

EXPLORED: Final[dict[str, str]] = {
    "answered within used": "0.10.0.1 0.10.1.1 dynamic KAFKA-6054",
    "sets what it speaks": "2.0.1 2.3.0 dynamic KAFKA-8649",
    "nothing is forgotten": "2.4.1 2.5.1 static KAFKA-9821",
}
"""Checker -> the search with two members in which it alone finds a known Kafka issue."""
