"""What one experiment with a cluster is asked to do, and what the seed makes of the rest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from probing.features import KAFKA_RELEASES, find_kafka_release
from system_tests.sim import OptionError, Scheduler

SCENARIOS: Final = ("upgrade", "downgrade", "minority", "preview", "double-roll", "lag")
"""upgrade: one rolling bounce, then levels step by step. downgrade: the same and back, levels and
programs. minority: part of the quorum is offline while levels are raised, and comes back as it was.
preview: from a cluster without levels in its log. double-roll: from a static setting to a flag, and
the emergency way back. lag: brokers far behind, with a group of clients that looks at them."""

KRAFT_FAULTS: Final = ("crash", "active", "pause", "drop", "lag")
"""Nodes killed, the active controller killed, nodes paused past their session, messages lost,
brokers far behind."""

_PREVIEWS: Final = ("3.0", "3.1", "3.2")
_FIRST_WITH_LEVELS: Final = "3.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftOptions:
    """One experiment.

    Attributes:
        seed: of everything that is drawn.
        scenario, old, new: None: drawn.
        controllers: 1, 3 or 5; brokers: how many; None: drawn.
        faults: names out of ``KRAFT_FAULTS``; None: drawn, none in half of the experiments.
    """

    seed: int = 0
    scenario: str | None = None
    old: str | None = None
    new: str | None = None
    controllers: int | None = None
    brokers: int | None = None
    faults: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftPlan:
    """An experiment with everything drawn.

    Attributes:
        scenario, old, new, controllers, brokers, faults: as in ``KraftOptions``.
        formatted: metadata.version that the directories are formatted with, None for none.
    """

    scenario: str
    old: str
    new: str
    controllers: int
    brokers: int
    faults: frozenset[str]
    formatted: int | None


def check_options(options: KraftOptions) -> None:
    """Check all that does not depend on the seed.

    Raises:
        OptionError: a name is unknown, or two options do not fit.
        FeatureError: a release has no levels.
    """
    if options.scenario is not None and options.scenario not in SCENARIOS:
        raise OptionError(f"no such scenario: {options.scenario}; there are {', '.join(SCENARIOS)}")
    unknown = sorted((options.faults or frozenset()) - set(KRAFT_FAULTS))
    if unknown:
        known = ", ".join(KRAFT_FAULTS)
        raise OptionError(f"no such fault: {unknown[0]}; there are none, all, {known}")
    if options.controllers is not None and options.controllers not in (1, 3, 5):
        raise OptionError(f"{options.controllers} controllers make no quorum here; take 1, 3 or 5")
    if options.scenario == "double-roll" and (options.old or options.new):
        raise OptionError("double-roll has programs of its own; leave --from and --to out")
    if options.scenario == "minority" and options.controllers == 1:
        raise OptionError("a quorum of 1 has no minority; take 3 or 5 controllers")
    if options.scenario == "preview" and options.old not in (None, *_PREVIEWS):
        raise OptionError(
            f"a preview cluster ran one of {', '.join(_PREVIEWS)}, not {options.old};"
            " give one of them, or leave --from out"
        )
    _check_pair(options)


def _check_pair(options: KraftOptions) -> None:
    order = [release.series for release in KAFKA_RELEASES]
    if (options.old is None) != (options.new is None):
        raise OptionError("give both --from and --to, or neither")
    if options.old is None or options.new is None:
        return
    old, new = find_kafka_release(options.old), find_kafka_release(options.new)
    if order.index(old.series) >= order.index(new.series):
        raise OptionError(f"{new.series} is not after {old.series}; name the older one with --from")
    if old.metadata[1] < new.metadata[0]:
        raise OptionError(
            f"{new.series} supports metadata.version {new.metadata[0]} and above, and {old.series}"
            f" reaches {old.metadata[1]}; go by a release in between, such as 3.9"
        )
    if options.scenario not in (None, "preview") and old.series in _PREVIEWS:
        raise OptionError(f"a cluster of {old.series} is a preview cluster; take that scenario")


def draw_plan(options: KraftOptions, dice: Scheduler) -> KraftPlan:
    """Draw what the options leave open."""
    scenario = options.scenario or _scenario(options, dice)
    least = 3 if scenario == "minority" else 1
    controllers = options.controllers or dice.choose([n for n in (3, 3, 3, 5, 1) if n >= least])
    brokers = options.brokers or dice.delay(2, 4)
    faults = options.faults
    if faults is None:
        some = dice.happens(0.5)
        faults = frozenset(f for f in KRAFT_FAULTS if some and dice.happens(0.4))
    if scenario == "lag":
        faults |= {"lag"}
    old, new = options.old, options.new
    formatted = None
    if scenario == "double-roll":
        old, new = "before", "after"
    elif old is None or new is None:
        old, new = _pair(scenario, dice)
    else:
        old, new = find_kafka_release(old).series, find_kafka_release(new).series
    if scenario not in ("double-roll", "preview"):
        formatted = _formatted(old, dice)
    return KraftPlan(
        scenario=scenario,
        old=old,
        new=new,
        controllers=controllers,
        brokers=brokers,
        faults=faults,
        formatted=formatted,
    )


def _scenario(options: KraftOptions, dice: Scheduler) -> str:
    """Draw a scenario that fits what was given."""
    fitting = []
    for scenario in SCENARIOS:
        try:
            check_options(replace(options, scenario=scenario))
        except OptionError:
            continue
        fitting.append(scenario)
    return dice.choose(fitting)


def _pair(scenario: str, dice: Scheduler) -> tuple[str, str]:
    releases = [release for release in KAFKA_RELEASES if release.series not in _PREVIEWS]
    if scenario == "preview":
        reachable = [release for release in releases if release.metadata[0] == 1]
        return dice.choose(_PREVIEWS), dice.choose(reachable).series
    pairs = [
        (old.series, new.series)
        for at, old in enumerate(releases)
        for new in releases[at + 1 :]
        if old.metadata[1] >= new.metadata[0]
    ]
    return dice.choose(pairs)


def _formatted(old: str, dice: Scheduler) -> int:
    """Draw the level of the directories: what the release takes by default, or an earlier one."""
    low, high = find_kafka_release(old).metadata
    earliest = max(low, find_kafka_release(_FIRST_WITH_LEVELS).metadata[1] - 3)
    return high if dice.happens(0.6) else dice.delay(earliest, high)


GROUP_ONLY: Final = (
    "members",
    "threads",
    "static",
    "partitions",
    "draw",
    "offline",
    "force",
    "report",
)
"""Options that mean nothing for a cluster."""


def read_kraft_options(given: Mapping[str, Any], *, was_given: frozenset[str]) -> KraftOptions:
    """Check what can be checked before anything runs.

    Args:
        given: the values of all options of the command.
        was_given: names of those that stood on the command line.

    Raises:
        OptionError: an option is for groups only, unknown, or does not fit.
        FeatureError: a release has no levels.
    """
    foreign = [name for name in GROUP_ONLY if name in was_given]
    if foreign:
        raise OptionError(f"--{foreign[0]} is for --world group; leave it out")
    faults: frozenset[str] | None = None
    if "faults" in was_given:
        words = {word.strip() for word in given["faults"].split(",") if word.strip()}
        faults = frozenset(KRAFT_FAULTS if words == {"all"} else words - {"none"})
    options = KraftOptions(
        seed=given["seed"] or 0,
        scenario=given["scenario"],
        old=given["old"],
        new=given["new"],
        controllers=given["controllers"],
        brokers=given["brokers"],
        faults=faults,
    )
    check_options(options)
    return options
