"""Simulated three-member bounces a second on one core, real bytes included.

`rolling-bounce simulate --seeds N --workers 1` runs the same. Goal: 150 a second, 300 as the aim.
"""

import itertools
import time

import pytest

from system_tests.sim import BounceOptions, run_bounce

PATHS = {
    "one version, 3.8.1 to 3.9.1": ("3.8.1", "3.9.1"),
    "one probing bounce, 2.8.2 to 3.9.1": ("2.8.2", "3.9.1"),
    "to ours, 3.1.2 to native": ("3.1.2", "native"),
    "between ours, native to next": ("native", "next"),
    "two bounces, 1.1.1 to 3.9.1": ("1.1.1", "3.9.1"),
    "drawn pairs": (None, None),
}


@pytest.mark.parametrize("path", PATHS)
def test_bounces_a_second(benchmark, path):
    old, new = PATHS[path]
    seeds = itertools.count()

    def one_bounce():
        outcome = run_bounce(BounceOptions(seed=next(seeds), old=old, new=new))
        assert outcome.ok

    began = time.process_time()
    benchmark.pedantic(one_bounce, rounds=60, warmup_rounds=3)
    print(f"\n{path}: {63 / (time.process_time() - began):.0f} bounces a second of processor time")
