"""The simulated part of a large group: what it says of the whole, and the estimate of time."""

import json
from itertools import count

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.plan import SimulatedGroup, Use, estimated_s, make_plan, scaled, step_costs


@pytest.mark.parametrize(
    ("old", "new", "uses"),
    [("3.9", "4.3", ()), ("2.3.1", "2.8", ()), ("3.9", "4.3", (Use.STATIC,))],
)
def test_the_costs_of_all_members_follow_from_those_of_a_part(old, new, uses):
    made = make_plan(find_release(old), find_release(new), frozenset(uses))
    group = SimulatedGroup(members=18, partitions=36, is_static=bool(uses), restart_ms=20_000)
    part = scaled(group, {}, sample=6)
    assert (part.members, part.size_factor) == (6, 3)
    found = [step_costs(made, size, seeds=3) for size in (group, part)]
    for whole, few in zip(*found, strict=True):
        assert few.usual("duration_ms") == pytest.approx(whole.usual("duration_ms"), rel=0.15)
        assert few.usual("membership") == pytest.approx(whole.usual("membership"), rel=0.15)
        ratio = few.usual("longest_pause_ms") / whole.usual("longest_pause_ms")
        assert 0.8 < ratio < 1.2


def test_an_offline_step_lasts_no_longer_with_more_members():
    made = make_plan(find_release("3.2"), find_release("3.3"), frozenset({Use.FK_JOIN}))
    group = scaled(SimulatedGroup(members=12, partitions=24), {}, sample=4)
    (few,) = step_costs(made, group, seeds=2)
    (whole,) = step_costs(made, SimulatedGroup(members=12, partitions=24), seeds=2)
    assert few.usual("duration_ms") < 2 * whole.usual("duration_ms")


def test_the_estimate_grows_with_the_square_of_the_members():
    made = make_plan(find_release("3.8"), find_release("3.9"))
    clock = map(float, count())  # each bounce of a few members takes a second
    once = {
        members: estimated_s(made, SimulatedGroup(members=members), 1, clock=lambda: next(clock))
        for members in (6, 12, 60)
    }
    assert once == {6: 1, 12: 4, 60: 100}


def test_a_group_without_a_size_has_two_partitions_for_each_thread():
    words = ["plan", "--from", "3.9", "--to", "4.3", "--members", "300", "--no-costs"]
    done = CliRunner().invoke(main, [*words, "--format", "json"])
    group = json.loads(done.stdout)["group"]
    assert (group["all_members"], group["members"], group["partitions"]) == (300, 24, 48)
