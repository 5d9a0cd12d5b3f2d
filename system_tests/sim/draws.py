"""What a seed draws that the options leave open: releases, dimensions, a change of the topology."""

import random
from dataclasses import replace

from probing import RELEASES, Release
from system_tests.engine import OptionError, Scheduler
from system_tests.sim.known_issues import Shape, known_issues
from system_tests.sim.plan import NATIVE, BounceOptions
from system_tests.sim.world.behaviour import behaviour_of, find_program
from system_tests.sim.world.dimensions import draw_dimensions
from system_tests.topology_changes import ChangeKind

_DRAWS = 10_000
_HALF, _STATIC = 0.5, 0.25


def shape_of(options: BounceOptions, old: Release, new: Release) -> Shape:
    """Return the group as the rows of known issues describe it."""
    return Shape(
        old=old,
        new=new,
        threads=options.threads,
        static=options.static,
        faults=options.faults,
        offline=options.offline,
        waits=options.waits_for_sessions,
    )


def should_work(options: BounceOptions, old: Release, new: Release) -> bool:
    """Tell whether no known issue speaks against this path in a group of this shape."""
    if options.static and not all(behaviour_of(r.name, None).may_be_static for r in (old, new)):
        return False
    return old.name != new.name and not known_issues(shape_of(options, old, new))


def draw(options: BounceOptions, scheduler: Scheduler) -> BounceOptions:
    """Fill in the releases that the options leave open.

    Raises:
        ReleaseError: a release does not exist.
        OptionError: every pair has a known issue.
    """
    if options.draw_all:
        options = _draw_group(options)
    if options.topology is not None or options.draw_topology:
        return _draw_change(options)
    old = None if options.old is None else find_program(options.old)
    new = None if options.new is None else find_program(options.new)
    if old is not None and new is not None:
        return replace(options, old=old.name, new=new.name)
    for _ in range(_DRAWS):
        first, other = old or scheduler.choose(RELEASES), new or scheduler.choose(RELEASES)
        if should_work(options, first, other):
            return replace(options, old=first.name, new=other.name)
    raise OptionError(
        "every pair of releases has a known Kafka issue in such a group; name both with --from and"
        " --to, or leave a fault out"
    )


def drawn_change(seed: int) -> tuple[ChangeKind, bool, bool, bool]:
    """Return what a seed draws of a change of the topology.

    The kind; whether new programs carry both topologies; whether members are cooperative, and
    static.
    """
    rng = random.Random(f"topology of {seed}")  # noqa: S311 a simulation
    kind = rng.choice(sorted(ChangeKind))
    return kind, rng.random() < _HALF, rng.random() < _HALF, rng.random() < _STATIC


def _draw_change(options: BounceOptions) -> BounceOptions:
    """Fill in what is open of a change of the topology; the members are native."""
    kind, carries_both, cooperative, is_static = drawn_change(options.seed)
    return replace(
        _drawn_static(options, is_static=is_static),
        old=NATIVE,
        new=NATIVE,
        topology=options.topology or kind,
        draw_topology=False,
        carries_both=carries_both,
        dimensions=replace(options.dimensions, cooperative=cooperative),
    )


def _draw_group(options: BounceOptions) -> BounceOptions:
    """Fill in the dimensions."""
    dimensions, is_static = draw_dimensions(options.seed, options.members)
    drawn = _drawn_static(options, is_static=is_static)
    if drawn.static:  # its coordinator answers a member that has moved without telling the leader
        dimensions = replace(dimensions, moves=False)
    return replace(drawn, dimensions=dimensions, draw_all=False)


def _drawn_static(options: BounceOptions, *, is_static: bool) -> BounceOptions:
    """Fill in whether members are static; a group that was asked to be static stays so.

    A failover of the coordinator may fence a static member for good, which is known.
    """
    if not (is_static or options.static):
        return options
    return replace(options, static=True, faults=options.faults - {"coordinator"})
