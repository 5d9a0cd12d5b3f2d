"""`sticky`: complete, balanced by thread, minimal moves, deterministic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor import AssignmentConfig, ClientInput, group_state, sticky, validate
from assignor.errors import TaskAssignmentError
from assignor.placement import LAG_UNKNOWN
from assignor.placement.bands import quotas
from encoding import TaskId


@st.composite
def groups(draw):
    subtopologies = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    tasks = [TaskId(s, p) for s, n in enumerate(subtopologies) for p in range(n)]
    stateful = {t for t in tasks if t.subtopology % 2 == 0}
    count = draw(st.integers(1, 6))
    owner = {t: draw(st.integers(0, count)) for t in tasks}
    clients = [
        ClientInput(
            process_id=f"client-{c}",
            threads=draw(st.integers(1, 4)),
            active_tasks=frozenset(t for t in tasks if owner[t] == c),
            lags={
                t: draw(st.sampled_from([0, 10, LAG_UNKNOWN]))
                for t in sorted(stateful)
                if draw(st.integers(0, 4)) == 0
            },
        )
        for c in range(count)
    ]
    config = AssignmentConfig(num_standby_replicas=draw(st.integers(0, 2)))
    return {"tasks": tasks, "stateful_tasks": stateful, "clients": clients, "config": config}


@given(groups())
def test_every_answer_is_valid(group):
    state = group_state(**group)
    assert validate(state, sticky(state)) == ()


@given(groups())
def test_stateful_and_all_active_tasks_are_level_by_thread(group):
    state = group_state(**group)
    active = sticky(state).active
    for chosen in (state.stateful, np.ones(len(state.tasks), dtype=bool)):
        load = np.bincount(active[chosen], minlength=len(state.clients))
        total, threads = int(chosen.sum()), int(state.threads.sum())
        slack = 0 if chosen is state.stateful else 1
        assert (load <= state.threads * (-(-total // threads) + slack)).all()


@given(groups(), st.randoms())
def test_the_order_of_the_input_changes_nothing(group, random):
    first = sticky(group_state(**group))
    shuffled = dict(group, tasks=list(group["tasks"]), clients=list(group["clients"]))
    random.shuffle(shuffled["tasks"])
    random.shuffle(shuffled["clients"])
    second = sticky(group_state(**shuffled))
    assert first.active.tolist() == second.active.tolist()
    assert first.standbys == second.standbys


@given(groups())
def test_a_second_round_moves_no_active_task(group):
    state = group_state(**group)
    first = sticky(state)
    again = [
        ClientInput(
            process_id=client.process_id,
            threads=client.threads,
            active_tasks=frozenset(
                task for i, task in enumerate(state.tasks) if first.active[i] == number
            ),
        )
        for number, client in enumerate(sorted(group["clients"], key=lambda c: c.process_id))
    ]
    second = sticky(group_state(**dict(group, clients=again)))
    assert second.active.tolist() == first.active.tolist()


def test_one_joining_client_takes_its_share_and_nothing_else_moves():
    tasks = [TaskId(0, p) for p in range(12)]
    old = [ClientInput(process_id=f"c{i}", active_tasks=frozenset(tasks[i::3])) for i in range(3)]
    state = group_state(
        tasks=tasks, stateful_tasks=tasks, clients=[*old, ClientInput(process_id="new")]
    )
    active = sticky(state).active
    assert np.bincount(active).tolist() == [3, 3, 3, 3]
    assert int((active != state.owner).sum()) == 3


def test_a_task_without_owner_goes_where_its_state_is():
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    clients = [ClientInput(process_id="a"), ClientInput(process_id="b", lags={tasks[0]: 5})]
    state = group_state(tasks=tasks, stateful_tasks=tasks, clients=clients)
    assert state.clients[sticky(state).active[0]] == "b"


def test_a_client_without_threads_gets_nothing_while_another_has_some():
    tasks = [TaskId(0, p) for p in range(4)]
    clients = [ClientInput(process_id="idle", threads=0), ClientInput(process_id="busy")]
    state = group_state(tasks=tasks, stateful_tasks=(), clients=clients)
    assert set(sticky(state).active.tolist()) == {state.clients.index("busy")}


def test_there_are_as_many_standbys_as_asked_for_or_as_clients_allow():
    tasks = [TaskId(0, p) for p in range(6)]
    clients = [ClientInput(process_id=f"c{i}") for i in range(3)]
    config = AssignmentConfig(num_standby_replicas=5)
    state = group_state(tasks=tasks, stateful_tasks=tasks, clients=clients, config=config)
    standbys = sticky(state).standbys
    assert [sum(t == task for t, _ in standbys) for task in range(6)] == [2] * 6


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(0, 30),
)
def test_quotas_stay_in_their_bands_and_add_up(clients, total):
    wanted = np.array([w for w, _ in clients])
    capacity = np.array([c for _, c in clients])
    quota = quotas(wanted, capacity, total)
    threads = int(capacity.sum())
    assert int(quota.sum()) == total
    assert (quota >= capacity * (total // threads)).all()
    assert (quota <= capacity * -(-total // threads)).all()


INVALID = {
    "no clients": [],
    "given twice": [ClientInput(process_id="a"), ClientInput(process_id="a")],
    "has -1 threads": [ClientInput(process_id="a", threads=-1)],
    "reports lag -5": [ClientInput(process_id="a", lags={TaskId(0, 0): -5})],
}


@pytest.mark.parametrize("sentence", INVALID)
def test_impossible_groups_are_refused(sentence):
    with pytest.raises(TaskAssignmentError, match=sentence):
        group_state(tasks=[TaskId(0, 0)], stateful_tasks=(), clients=INVALID[sentence])


def test_tasks_that_are_gone_or_claimed_twice_are_warned_about():
    task, gone = TaskId(0, 0), TaskId(7, 7)
    clients = [
        ClientInput(process_id="a", active_tasks=frozenset({task, gone})),
        ClientInput(process_id="b", active_tasks=frozenset({task})),
    ]
    state = group_state(tasks=[task], stateful_tasks=(), clients=clients)
    assert state.owner.tolist() == [0]
    assert [w for w in state.warnings if "do not exist: 7_7" in w]
    assert [w for w in state.warnings if "runs on a and b; a counts" in w]
