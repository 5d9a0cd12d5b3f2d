"""Which tasks of a member count as restoring."""

import pytest

from assignor import Topology, TopologyError
from assignor.embedding import (
    JSON,
    TEXT,
    DictStore,
    TaskStores,
)
from tests.assignor.embedding.state_stores.logs import (
    INPUTS,
    TASK,
    TOPOLOGY,
    WORDS,
    Access,
    Cluster,
    Steps,
)


def test_a_task_without_stores_runs_at_once():
    topology = (
        Topology()
        .add_source("read", topics=["orders"])
        .add_processor("pass", parents=["read"])
        .add_source("other", topics=["visits"])
        .add_processor("count", parents=["other"])
        .add_state_store("counts", processors=["count"])
    )
    counts = DictStore("counts", key=TEXT, value=JSON)
    cluster = Cluster()
    cluster.write(*WORDS)
    with TaskStores(
        topology, [counts], application_id="app", access=Access(cluster, Steps())
    ) as stores:
        [task] = {stores._layout.task_of_input("orders", 0)}
        stores.on_tasks_assigned({task: (INPUTS[0],)}, {})
        seen = []

        def handle(record, state):
            seen.append(record.word)
            with pytest.raises(TopologyError, match=r"has no store 'counts'; its stores: none"):
                state[counts]

        batch = {INPUTS[0]: cluster.input[INPUTS[0]][:2]}
        assert stores.process(batch, handle) == {INPUTS[0]: 2}
        assert len(seen) == 2
        assert not cluster.logs


def test_a_task_is_restoring_by_its_offset_until_it_is_restored_and_not_while_it_is_claimed_again(
    cluster, member
):
    owner, next_owner = member("one"), member("two")
    owner.assign()
    assert owner.stores.task_offsets() == {TASK: 0}
    assert owner.stores.restoring_tasks() == {TASK}
    owner.finish()
    assert owner.stores.restoring_tasks() == set()
    for _ in range(2):  # two rebalances within one poll
        owner.revoke()
        owner.assign()
        assert owner.stores.restoring_tasks() == set(), "its state is the latest"
    owner.revoke()
    owner.stores.on_tasks_assigned({}, {})
    next_owner.assign()
    next_owner.finish()
    owner.assign()
    assert owner.stores.restoring_tasks() == {TASK}, "another member has changed its state"
    owner.poll()
    owner.stores.on_tasks_lost({TASK: INPUTS}, {})
    owner.assign()
    assert owner.stores.restoring_tasks() == {TASK}


def test_a_task_without_a_store_here_is_never_restoring(cluster):
    stores = TaskStores(TOPOLOGY, [], application_id="app", access=Access(cluster, Steps()))
    stores.on_tasks_assigned({TASK: INPUTS}, {})
    assert (stores.restoring_tasks(), dict(stores.task_offsets())) == (set(), {})
    stores.close()
