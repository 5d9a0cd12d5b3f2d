"""Experiments with many seeds: the work of one worker process."""

from collections.abc import Sequence
from dataclasses import replace

from system_tests.cluster.narrate import kraft_replay
from system_tests.cluster.plan import KraftOptions
from system_tests.cluster.run import run_kraft
from system_tests.sim import Chunk, check_seeds


def run_kraft_seeds(options: KraftOptions, seeds: Sequence[int]) -> Chunk:
    """Run one experiment a seed."""
    return check_seeds(
        seeds,
        run=lambda seed: run_kraft(replace(options, seed=seed)),
        releases=lambda outcome: (outcome.plan.old, outcome.plan.new),
        replay=kraft_replay,
    )
