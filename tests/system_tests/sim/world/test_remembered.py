"""The result of a strategy is cached by group."""

import numpy as np

from assignor import ClientInput, TaskId, group_state, run_strategy
from assignor.placement import find_strategy
from system_tests.sim.world.remembered import forget_answers, remembered

TASKS = [TaskId(0, number) for number in range(4)]


def group(*owners, lag=0):
    """Four tasks, and clients with the tasks that they ran."""
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=[
            ClientInput(
                process_id=f"client {number}",
                threads=1,
                active_tasks=frozenset(TASKS[task] for task in tasks),
                lags={TASKS[task]: lag for task in tasks},
            )
            for number, tasks in enumerate(owners)
        ],
        end_offset_sums=dict.fromkeys(TASKS, 10),
    )


def test_a_group_is_asked_about_once():
    asked = []
    sticky = find_strategy("sticky")

    def counted(state):
        asked.append(state)
        return sticky(state)

    strategy = remembered(counted)
    groups = [group((0, 1), ()), group((0,), (1,)), group((0,), (1,), lag=3), group((0, 1), ())]
    for state in groups:
        found, whole = run_strategy(state, strategy), run_strategy(state, sticky)
        assert np.array_equal(found.active, whole.active)
        assert (found.standbys, found.warnings) == (whole.standbys, whole.warnings)
    assert len(asked) == 3
    forget_answers()
    run_strategy(groups[0], strategy)
    assert len(asked) == 4
    assert strategy.__name__ == "counted"


def test_what_a_caller_does_to_an_answer_is_not_remembered():
    strategy = remembered(find_strategy("sticky"))
    first = run_strategy(group((0, 1), ()), strategy)
    before = first.active.copy()
    first.active[:] = 0
    assert np.array_equal(run_strategy(group((0, 1), ()), strategy).active, before)
