"""Stores that are added and removed with versions of the topology keep counts exactly once."""

from contextlib import suppress
from itertools import count

import pytest

from assignor import Topology
from assignor.embedding import JSON, TEXT, DictStore, TaskStores
from tests.assignor.embedding.state_stores.logs import (
    INPUTS,
    TASK,
    WORDS,
    Access,
    Cluster,
    Killed,
    Steps,
)

STORES = {name: DictStore(name, key=TEXT, value=JSON) for name in ("audit", "counts", "tail")}


def run(cluster, names, *, steps=None, records=3):
    """Process all input with these stores, in polls of some records; return their entries."""
    topology = (
        Topology()
        .add_source("read", topics=["orders", "visits"])
        .add_processor("p", parents=["read"])
    )
    for name in names:
        topology = topology.add_state_store(name, processors=["p"])
    stores = [STORES[name] for name in names]

    def handle(record, state):
        for store in stores:
            state[store].put(record.word, state[store].get(record.word, 0) + 1)

    access = Access(cluster, Steps() if steps is None else steps)
    with TaskStores(topology, stores, application_id="app", access=access) as made:
        made.on_tasks_assigned({TASK: INPUTS}, {})
        while made.waiting:
            made.process({}, handle)
        for at in count(0, records):
            batch = {each: cluster.input[each][at : at + records] for each in INPUTS}
            if not any(batch.values()):
                break
            made.process(batch, handle)
        return {name: dict(made[TASK][STORES[name]].items()) for name in names}


@pytest.fixture
def cluster():
    made = Cluster()
    made.write(*WORDS, *WORDS[:2])
    return made


@pytest.mark.parametrize("other", ["audit", "tail"])
@pytest.mark.parametrize("compact", [False, True])
def test_an_old_commit_overwrites_nothing(cluster, other, compact):
    for names in [["counts"], ["counts", other], ["counts"], ["counts", other], ["counts"]]:
        cluster.write(*WORDS)
        found = run(cluster, names)
        if compact:
            for log in cluster.logs.values():
                log.compact()
        assert found["counts"] == cluster.expected()["by-word"], names


def test_a_store_that_comes_back_has_no_commit_that_counts(cluster):
    run(cluster, ["audit", "counts"], records=1)
    cluster.write(*WORDS)
    run(cluster, ["counts"], records=100)
    cluster.write("odd")
    found = run(cluster, ["audit", "counts"])
    assert found["counts"] == cluster.expected()["by-word"]


@pytest.mark.parametrize("left", [["audit"], ["counts"], ["tail"], ["audit", "tail"]])
def test_a_kill_at_any_step_before_stores_are_removed_changes_no_count(left):
    for at in count(1):
        cluster = Cluster()
        cluster.write(*WORDS[:3])
        steps = Steps(at)
        with suppress(Killed):
            run(cluster, ["audit", "counts", "tail"], steps=steps)
        expected = cluster.expected()["by-word"]
        assert run(cluster, left) == dict.fromkeys(left, expected), (at, steps.names[-1])
        assert run(cluster, left) == dict.fromkeys(left, expected), (at, steps.names[-1])
        if steps.taken < at:
            return
