"""Options of an experiment with a cluster, and the plan that a seed makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from probing.features import KAFKA_RELEASES, find_kafka_release
from system_tests.engine import OptionError, Scheduler

SCENARIOS: Final = ("upgrade", "downgrade", "minority", "preview", "double-roll", "lag")
"""The scenarios.

- upgrade: a rolling bounce, then the levels are raised step by step.
- downgrade: an upgrade, then levels and releases are lowered again.
- minority: part of the quorum is offline while levels are raised, and returns unchanged.
- preview: the old cluster has no levels in its log.
- double-roll: from a static setting to a feature flag, and the emergency rollback.
- lag: brokers are far behind, and a group of clients polls them.
"""

KRAFT_FAULTS: Final = ("crash", "active", "pause", "drop", "lag")
"""Nodes killed, the active controller killed, nodes paused past their session, messages lost,
brokers far behind."""

_PREVIEWS: Final = ("3.0", "3.1", "3.2")
_FIRST_WITH_LEVELS: Final = "3.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftOptions:
    """One experiment.

    Attributes:
        seed: seed of all random choices.
        scenario: one of ``SCENARIOS``; None: random.
        old, new: releases; None: random.
        controllers: 1, 3 or 5; None: random.
        brokers: number of brokers; None: random.
        faults: names of ``KRAFT_FAULTS``; None: random, none in half of the experiments.
    """

    seed: int = 0
    scenario: str | None = None
    old: str | None = None
    new: str | None = None
    controllers: int | None = None
    brokers: int | None = None
    faults: frozenset[str] | None = None

    @property
    def replay(self) -> str:
        """The command that repeats exactly this experiment."""
        parts = [f"rolling-bounce simulate --world kraft --seed {self.seed}"]
        parts += [f"--scenario {self.scenario}"] if self.scenario else []
        parts += [f"--from {self.old} --to {self.new}"] if self.old else []
        parts += [f"--controllers {self.controllers}"] if self.controllers else []
        parts += [f"--brokers {self.brokers}"] if self.brokers else []
        if self.faults is not None:
            parts.append(f"--faults {','.join(sorted(self.faults)) or 'none'}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftPlan:
    """A complete experiment.

    Attributes:
        scenario, old, new, controllers, brokers, faults: as in ``KraftOptions``.
        formatted: metadata.version that the directories are formatted with; None if none.
    """

    scenario: str
    old: str
    new: str
    controllers: int
    brokers: int
    faults: frozenset[str]
    formatted: int | None


def check_options(options: KraftOptions) -> None:
    """Check everything that does not depend on the seed.

    Raises:
        OptionError: a name is unknown, or two options contradict each other.
        FeatureError: a release has no levels.
    """
    if options.scenario is not None and options.scenario not in SCENARIOS:
        known = ", ".join(SCENARIOS)
        raise OptionError(f"unknown scenario {options.scenario!r}; choose from {known}")
    unknown = sorted((options.faults or frozenset()) - set(KRAFT_FAULTS))
    if unknown:
        known = ", ".join(KRAFT_FAULTS)
        raise OptionError(f"unknown fault {unknown[0]!r}; choose from none, all, {known}")
    if options.controllers is not None and options.controllers not in (1, 3, 5):
        raise OptionError(f"{options.controllers} controllers are not supported; take 1, 3 or 5")
    if options.scenario == "double-roll" and (options.old or options.new):
        raise OptionError("double-roll has its own releases; leave --from and --to out")
    if options.scenario == "minority" and options.controllers == 1:
        raise OptionError("a quorum of 1 has no minority; take 3 or 5 controllers")
    if options.scenario == "preview" and options.old not in (None, *_PREVIEWS):
        raise OptionError(
            f"scenario preview starts from {', '.join(_PREVIEWS)}, not {options.old};"
            " give one of these, or leave --from out"
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
            f"{new.series} supports metadata.version {new.metadata[0]} and above, {old.series}"
            f" supports up to {old.metadata[1]}; upgrade through a release in between, such as 3.9"
        )
    if options.scenario not in (None, "preview") and old.series in _PREVIEWS:
        raise OptionError(f"a cluster of {old.series} is a preview cluster; use --scenario preview")


def draw_plan(options: KraftOptions, rng: Scheduler) -> KraftPlan:
    """Return the plan: the options, and random choices for what they leave open."""
    scenario = options.scenario or _scenario(options, rng)
    least = 3 if scenario == "minority" else 1
    controllers = options.controllers or rng.choose([n for n in (3, 3, 3, 5, 1) if n >= least])
    brokers = options.brokers or rng.delay(2, 4)
    faults = options.faults
    if faults is None:
        some = rng.happens(0.5)
        faults = frozenset(f for f in KRAFT_FAULTS if some and rng.happens(0.4))
    if scenario == "lag":
        faults |= {"lag"}
    old, new = options.old, options.new
    formatted = None
    if scenario == "double-roll":
        old, new = "before", "after"
    elif old is None or new is None:
        old, new = _pair(scenario, rng)
    else:
        old, new = find_kafka_release(old).series, find_kafka_release(new).series
    if scenario not in ("double-roll", "preview"):
        formatted = _formatted(old, rng)
    return KraftPlan(
        scenario=scenario,
        old=old,
        new=new,
        controllers=controllers,
        brokers=brokers,
        faults=faults,
        formatted=formatted,
    )


def _scenario(options: KraftOptions, rng: Scheduler) -> str:
    """Return a random scenario that fits the options."""
    fitting = []
    for scenario in SCENARIOS:
        try:
            check_options(replace(options, scenario=scenario))
        except OptionError:
            continue
        fitting.append(scenario)
    return rng.choose(fitting)


def _pair(scenario: str, rng: Scheduler) -> tuple[str, str]:
    releases = [release for release in KAFKA_RELEASES if release.series not in _PREVIEWS]
    if scenario == "preview":
        reachable = [release for release in releases if release.metadata[0] == 1]
        return rng.choose(_PREVIEWS), rng.choose(reachable).series
    pairs = [
        (old.series, new.series)
        for at, old in enumerate(releases)
        for new in releases[at + 1 :]
        if old.metadata[1] >= new.metadata[0]
    ]
    return rng.choose(pairs)


def _formatted(old: str, rng: Scheduler) -> int:
    """Return the level to format with: the default of the release, or an earlier one."""
    low, high = find_kafka_release(old).metadata
    earliest = max(low, find_kafka_release(_FIRST_WITH_LEVELS).metadata[1] - 3)
    return high if rng.happens(0.6) else rng.delay(earliest, high)


GROUP_ONLY: Final = (
    "members",
    "threads",
    "static",
    "partitions",
    "draw",
    "topology",
    "offline",
    "force",
    "report",
)
"""Options of `simulate` that do not apply to a cluster."""


def read_kraft_options(given: Mapping[str, Any], *, was_given: frozenset[str]) -> KraftOptions:
    """Return the options of the command, checked.

    Args:
        given: values of all options of the command.
        was_given: names of the options on the command line.

    Raises:
        OptionError: an option is for groups only, unknown, or contradicts another.
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
