"""State that a simulated bounce restores: the initial fill, rates, growth, tasks without state."""

from dataclasses import replace

import pytest

from probing import find_release
from system_tests.engine import OptionError
from system_tests.plan import SimulatedGroup, make_plan, scaled, step_costs
from system_tests.sim import Took, run_bounce
from tests.costs import calls_of

SEEDS = 5
SMALL = SimulatedGroup(partitions=3, sizes=(900, 0, 0), stateful=(True, False, False))


def cost(group, seeds=SEEDS):
    (found,) = step_costs(make_plan(find_release("3.9"), find_release("4.1")), group, seeds=seeds)
    return found


@pytest.mark.parametrize("members", [1, 2, 4])
@pytest.mark.parametrize("sizes", [(), (100_000,) * 6])
def test_a_slower_rate_never_costs_less(members, sizes):
    group = SimulatedGroup(members=members, sizes=sizes)
    found = [cost(replace(group, restore=rate)) for rate in (200_000, 50_000, 49_999, 5_000)]
    for name in ("pause_ms", "longest_pause_ms", "restore_ms"):
        values = [each.usual(name) for each in found]
        assert values == sorted(values), name
    records = [each.usual("restored") for each in found]  # the next member is stopped later
    assert min(records) > 0.98 * max(records)
    assert found[1].usual("restored") == found[2].usual("restored")
    assert found[0].usual("restore_ms") < found[-1].usual("restore_ms")


def test_the_initial_fill_is_no_cost_of_the_upgrade():
    # Dynamic members are down for at most 60 s and a session of 45 s; then their own state is read.
    found = cost(SimulatedGroup(members=1))
    assert found.usual("restored") <= 6 * 100 * (60 + 45)
    assert cost(SimulatedGroup(members=1, growth=0)).usual("restored") == 0


def test_tasks_without_changelog_restore_nothing():
    assert cost(replace(SMALL, sizes=(), stateful=(False,) * 3)).usual("restored") == 0
    assert cost(replace(SMALL, sizes=(), stateful=(False,) * 3, growth=500)).usual("restored") == 0
    outcome = run_bounce(SMALL.options(seed=1, old="3.9", new="4.1"))
    assert max(event.restored for event in outcome.trace if isinstance(event, Took)) == 900


def test_a_restore_reads_no_more_than_the_state_and_its_growth():
    group = SimulatedGroup(members=4, partitions=8, sizes=(2_000,) * 8, restore=1_000)
    for seed in range(3):
        outcome = run_bounce(group.options(seed=seed, old="3.9", new="4.1"))
        for event in outcome.trace:
            if isinstance(event, Took):
                most = 2_000 + 2 * event.at_ms // 1000
                assert event.restored <= most * len(event.gained)


def test_the_work_of_a_simulation_does_not_grow_with_the_state():
    def run(records):
        group = SimulatedGroup(sizes=(records,) * 6, growth=10)
        return run_bounce(group.options(seed=1, old="3.9", new="4.1"))

    assert abs(len(run(10**13).trace) - len(run(10**4).trace)) < 10
    # From about 10**8 records on, a restore takes longer than a bounce waits for it.
    small, medium, large = (calls_of(lambda n=n: run(n)) for n in (10**4, 10**8, 10**13))
    assert medium < 4 * small
    assert large < 1.1 * medium


def test_the_growth_is_an_option_or_a_share_of_the_known_state():
    assert SimulatedGroup().rates.growths == (100,) * 6
    known = SimulatedGroup(partitions=3, sizes=(10**9, 5_000, 128))
    assert known.rates.growths == (100, 5, 0)
    assert "0.1 % of its size a second, at most 100 records (assumed; see --growth)" in str(known)
    given = replace(known, growth=7)
    assert given.rates.growths == (7,) * 3
    assert "each changelog grows by 7 records a second," in str(given)
    assert "no state" in str(replace(SMALL, stateful=(False,) * 3))
    with pytest.raises(OptionError, match=r"grow by 2,000 records a second \(--growth\) are never"):
        SimulatedGroup(restore=2_000, growth=2_000)


def test_a_scaled_group_keeps_its_tasks_without_changelog():
    large = SimulatedGroup(
        members=640, partitions=1280, sizes=(5, 0) * 640, stateful=(True, False) * 640
    )
    small = scaled(large, {"growth": 3})
    assert sum(small.stateful) == sum(size > 0 for size in small.sizes)
    (note,) = small.notes
    assert "the pauses of all partitions together are those of this part" in note
