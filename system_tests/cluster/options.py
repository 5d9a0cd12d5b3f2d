"""From options as a command line gives them to an experiment with a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from system_tests.cluster.plan import KRAFT_FAULTS, KraftOptions, check_options
from system_tests.sim import OptionError

GROUP_ONLY: Final = ("members", "threads", "static", "partitions", "offline", "force", "report")
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
