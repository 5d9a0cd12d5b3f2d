"""Rules of quotas and movements, removed one at a time: a test of quality fails each time."""

import sys

import numpy as np
import pytest

from assignor.placement import actives, bands, final_places, movements
from assignor.placement.state import NOBODY
from tests.assignor.placement import test_high_availability as quality
from tests.assignor.placement import test_oracles as oracles

# The front door hides the module behind the strategy of the same name.
ENTRY = sys.modules["assignor.placement.builtin"]


def a_quota_is_as_near_to_what_is_held_as_the_band_allows(patch):
    def even(wanted, capacity, total):
        return bands.quotas(np.zeros_like(wanted), capacity, total)

    patch.setattr(actives, "quotas", even)


def what_runs_well_stays_at_home(patch):
    def without_homes(state, _):
        return actives.target_actives(state, np.full(len(state.tasks), NOBODY))

    patch.setattr(final_places, "target_actives", without_homes)


def what_must_move_goes_to_caught_up_clients_first(patch):
    patch.setattr(actives, "moved_along_hot_paths", lambda _, home, __: home.copy())


def the_active_waits_until_its_target_has_caught_up(patch):
    patch.setattr(ENTRY, "actives_now", lambda _, target, __: target)


def caught_up_copies_stand_in_until_new_places_are(patch):
    within_budget = movements._within_budget

    def forgetful(state, in_place, builds):
        return within_budget(state, {task: [] for task in in_place}, builds)

    patch.setattr(movements, "_within_budget", forgetful)


def no_problem_costs_more():
    for name in sorted(quality.PROBLEMS):
        quality.test_no_problem_costs_more_than_kafka_and_nothing_starts_cold(name)


def one_joining_client():
    quality.test_one_joining_client_takes_its_share_in_as_many_rounds_as_the_warm_ups_need()


@pytest.mark.parametrize(
    ("rule", "test"),
    [
        (
            a_quota_is_as_near_to_what_is_held_as_the_band_allows,
            oracles.test_handoffs_are_the_least_there_are,
        ),
        (what_runs_well_stays_at_home, one_joining_client),
        (
            what_must_move_goes_to_caught_up_clients_first,
            oracles.test_handoffs_are_the_least_there_are,
        ),
        (the_active_waits_until_its_target_has_caught_up, no_problem_costs_more),
        (
            caught_up_copies_stand_in_until_new_places_are,
            oracles.test_restores_are_within_five_percent_of_the_least_there_are,
        ),
    ],
    ids=lambda value: value.__name__.removeprefix("test_"),
)
def test_the_quality_test_fails_without(rule, test, monkeypatch):
    rule(monkeypatch)
    with pytest.raises(AssertionError):
        test()
