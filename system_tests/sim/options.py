"""From options as a command line gives them to a bounce that can be."""

from collections.abc import Mapping
from typing import Any

from system_tests.sim.behaviour import find_program
from system_tests.sim.plan import FAULTS, BounceOptions, OptionError, plan_bounce


def read_options(given: Mapping[str, Any]) -> BounceOptions:
    """Check what can be checked before anything runs.

    Args:
        given: seed, old, new, members, threads, static, partitions, offline, force as in
            `BounceOptions`, and `faults` as text: none, all, or a comma separated list.

    Raises:
        OptionError: an unknown fault, or options that do not fit together.
        ReleaseError: no such release.
    """
    words = [word.strip() for word in given["faults"].split(",") if word.strip()]
    # A failover may fence a static member for good: that is known, and must be asked for by name.
    everything = [f for f in FAULTS if not (given["static"] and f == "coordinator")]
    faults = (
        frozenset() if words == ["none"] else frozenset(everything if words == ["all"] else words)
    )
    unknown = sorted(faults - set(FAULTS))
    if unknown:
        raise OptionError(f"no such fault: {unknown[0]}; there are none, all, {', '.join(FAULTS)}")
    if faults and given["offline"]:
        raise OptionError("--faults strike while members are bounced; leave --offline out")
    options = BounceOptions(
        seed=given["seed"] or 0,
        old=given["old"],
        new=given["new"],
        members=given["members"],
        threads=given["threads"],
        static=given["static"],
        partitions=given["partitions"],
        faults=faults,
        offline=given["offline"],
        force=given["force"],
    )
    for name in (options.old, options.new):
        if name is not None:
            find_program(name)
    if options.old is not None and options.new is not None:
        plan_bounce(options)
    return options
