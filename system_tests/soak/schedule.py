"""What happens to the group, drawn from one seed: the same seed, the same disturbances.

Kinds are drawn from a shuffled list, the pack, so that each is as frequent as in the pack, and
occurs again only after all others. With `kill_every_s`, the clock puts kills between them, and the
seed alone gives no schedule. Nothing here depends on the state of the group: which member is "the
leader" is decided when the disturbance is applied.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle
from random import Random
from time import monotonic

from probing import RELEASES
from system_tests.live import PathError, Switches, plan_path
from system_tests.soak.options import NATIVE, SoakOptions


class Kind(StrEnum):
    """What is done to the group."""

    BOUNCE = "rolling bounce"
    KILL = "member killed"
    KILL_LEADER = "leader killed"
    PAUSE = "member paused"
    PAUSE_LONG = "member paused past its session"
    PAUSE_LEADER = "leader paused past its session"
    GROW = "member more"
    SHRINK = "member fewer"
    CUT = "connections cut"
    SLOW = "slow answers"
    LOSE = "answers lost"
    REFUSE = "coordinator unavailable"
    MOVE = "coordinator moved"
    NODE_DOWN = "one of two brokers down"
    RESTART = "broker restarted"
    CRASH = "broker killed"
    FREEZE = "broker paused"


_OF_MEMBERS = (
    *(Kind.BOUNCE, Kind.BOUNCE, Kind.BOUNCE),
    *(Kind.KILL, Kind.KILL_LEADER, Kind.PAUSE, Kind.PAUSE_LONG, Kind.PAUSE_LEADER),
    *(Kind.GROW, Kind.SHRINK),
)
EMBEDDED_PACK = (
    *_OF_MEMBERS,
    *(Kind.CUT, Kind.SLOW, Kind.LOSE, Kind.REFUSE, Kind.MOVE, Kind.NODE_DOWN),
)
"""One round on the embedded broker."""
REAL_PACK = (*_OF_MEMBERS, Kind.RESTART, Kind.CRASH, Kind.FREEZE)
"""One round on a real broker."""

_FAULTS = (Kind.CUT, Kind.SLOW, Kind.LOSE, Kind.REFUSE)
_WITH_VICTIM = (Kind.SHRINK, Kind.KILL, Kind.PAUSE, Kind.PAUSE_LONG)
_KILLS = (Kind.KILL, Kind.KILL_LEADER)
_HALF = 0.5
_ORDERS = ("leader-last", "leader-first", "random")
_LEAST_MEMBERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """One disturbance; then the group must settle, and is left alone for `calm_s`.

    Attributes:
        number: from 1.
        victim: the member that is disturbed; None: the leader, or no member. With a fault of the
            broker, the victim is restarted meanwhile, so that the fault disturbs a rebalance.
        release: of a bounce; order: of a bounce, as `rolling-bounce live` names it.
        share: how strong, from 0 to 1; each kind has its own scale.
        at_once: a killed member is restarted before the coordinator notices.
    """

    number: int
    kind: Kind
    victim: str | None
    release: str | None
    order: str
    share: float
    at_once: bool
    calm_s: float


def draw_schedule(
    options: SoakOptions, *, now_s: Callable[[], float] = monotonic
) -> Iterator[Disturbance]:
    """Draw disturbances without end; `now_s` is the clock of `kill_every_s`."""
    rng = Random(options.seed)  # noqa: S311 an experiment is repeatable, not secret
    up, release = list(options.names[: options.members]), NATIVE
    for number, drawn in enumerate(_kinds(options, rng, now_s), start=1):
        kind = _possible(drawn, up, options)
        victim, to = None, None
        if kind is Kind.BOUNCE:
            release = to = _next_release(release, rng)
        elif kind is Kind.GROW:
            victim = rng.choice([name for name in options.names if name not in up])
            up.append(victim)
        elif kind in _WITH_VICTIM or (kind in _FAULTS and rng.random() < _HALF):
            victim = rng.choice(_disturbable(up, options))
        if kind is Kind.SHRINK and victim is not None:
            up.remove(victim)
        yield Disturbance(
            number=number,
            kind=kind,
            victim=victim,
            release=to,
            order=rng.choice(_ORDERS),
            share=round(rng.random(), 3),
            at_once=rng.random() < _HALF,
            calm_s=round(options.calm_s * (1 + rng.random()), 1),
        )


def _kinds(options: SoakOptions, rng: Random, now_s: Callable[[], float]) -> Iterator[Kind]:
    """Draw kinds, and a kill before the next one when the last kill is too long ago."""
    pack = EMBEDDED_PACK if options.broker is None else REAL_PACK
    kills, killed_s = cycle(_KILLS), now_s()
    while True:
        for drawn in rng.sample(pack, len(pack)):
            if options.kill_every_s and now_s() - killed_s >= options.kill_every_s:
                yield next(kills)
                killed_s = now_s()
            yield drawn
            if drawn in _KILLS:
                killed_s = now_s()


def free_path(old: str, new: str) -> bool:
    """Return whether a group gets from one release to another in one bounce without a pin."""
    try:
        stages = plan_path(old, new, Switches()).stages
    except PathError:
        return False
    return len(stages) == 1 and stages[0].upgrade_from is None


def _next_release(current: str, rng: Random) -> str:
    """Draw a release that can be mixed with the current one and with the native one.

    A long-lived member stays native, so that most groups of a soak are mixed ones. Half of the
    bounces are to a native release, the others to any.
    """
    others = [release for release in RELEASES if release.name != current]
    names = [release.name for release in others]
    natives = [release.name for release in others if release.is_native]
    drawn = rng.sample(natives if rng.random() < _HALF else names, len(natives))
    for name in (*drawn, *rng.sample(names, len(names))):
        beside_native = name == NATIVE or (free_path(NATIVE, name) and free_path(name, NATIVE))
        if beside_native and free_path(current, name):
            return name
    return NATIVE


def _possible(kind: Kind, up: Sequence[str], options: SoakOptions) -> Kind:
    """Return the kind, or its opposite if the group cannot grow or shrink any more."""
    if kind is Kind.GROW and len(up) == len(options.names):
        return Kind.SHRINK
    least = max(_LEAST_MEMBERS, options.members - 1, len(options.long_lived) + 1)
    if kind is Kind.SHRINK and len(up) <= least:
        return Kind.GROW
    return kind


def _disturbable(up: Sequence[str], options: SoakOptions) -> list[str]:
    return [name for name in sorted(up) if name not in options.long_lived]
