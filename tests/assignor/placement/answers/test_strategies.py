"""Strategies by name, and the helpers for custom strategies."""

import numpy as np
import pytest

from assignor import (
    AssignmentConfig,
    ClientInput,
    ConfigError,
    default_standbys,
    group_state,
    high_availability,
    identity,
    sticky,
    validate,
)
from assignor.placement import LAG_RUNNING, STRATEGIES, fallback_prior, find_strategy
from encoding import TaskId

TASKS = [TaskId(s, p) for s in range(2) for p in range(4)]


def group(*, standbys=1):
    stateful = TASKS[:4]
    return group_state(
        tasks=TASKS,
        stateful_tasks=stateful,
        clients=[
            ClientInput(
                process_id="a",
                active_tasks=frozenset(TASKS[:3] + TASKS[4:7]),
                lags=dict.fromkeys(TASKS[:3], LAG_RUNNING),
            ),
            ClientInput(process_id="b", lags={TASKS[0]: 90_000, TASKS[3]: 40}),
            ClientInput(process_id="c", lags={TASKS[0]: 5}),
        ],
        config=AssignmentConfig(num_standby_replicas=standbys),
        end_offset_sums=dict.fromkeys(stateful, 10**6),
    )


def test_names_lead_to_strategies():
    assert find_strategy("sticky") is sticky
    assert find_strategy("high_availability") is high_availability
    assert find_strategy("fallback_prior") is fallback_prior
    assert sorted(STRATEGIES) == list(STRATEGIES)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean high_availability"):
        find_strategy("high_avail")
    with pytest.raises(ConfigError, match="known: fallback_prior, high_availability"):
        find_strategy("zzz")


def test_identity_leaves_everything_in_place_and_deals_what_has_no_owner():
    state = group()
    answer = identity(state)
    assert validate(state, answer) == ()
    owned = state.owner >= 0
    assert (answer.active[owned] == state.owner[owned]).all()
    assert (0, 2) in answer.standbys
    assert (0, 1) not in answer.standbys


def test_default_standbys_fit_the_actives_given():
    state = group(standbys=2)
    active = np.array([2, 1, 0, 0, 0, 0, 0, 0])
    found = default_standbys(state, active)
    assert sorted({task for task, _ in found}) == [0, 1, 2, 3]
    assert len(found) == 8
    assert all(active[task] != client for task, client in found)


def test_fallback_keeps_every_owner_and_looks_again():
    state = group()
    answer = fallback_prior(state)
    assert validate(state, answer) == ()
    owned = state.owner >= 0
    assert (answer.active[owned] == state.owner[owned]).all()
    # Task 3 has no owner, and its state is on b.
    assert answer.active[3] == 1
    assert answer.followup
