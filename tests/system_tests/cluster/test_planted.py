"""A checker of the cluster finds every mistake that is planted in the rules of feature levels."""

import pytest

from system_tests.cluster import KraftOptions, run_kraft
from tests.system_tests.cluster.planted import PLANTED


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_mistake_is_found_and_without_it_the_same_seed_is_good(monkeypatch, planted):
    options = KraftOptions(seed=planted.seed, scenario=planted.scenario)
    assert run_kraft(options).broken == ()
    planted.plant(monkeypatch)
    assert planted.breaks in {broken.rule for broken in run_kraft(options).broken}
