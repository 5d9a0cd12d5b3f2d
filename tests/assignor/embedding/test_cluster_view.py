"""The facts of a leader, with and without a connection to the cluster."""

import numpy as np
import pytest

from assignor import Topology, group_state
from assignor.embedding import (
    ClusterWatch,
    InternalTopicManager,
    InternalTopicSettings,
    lags_or_prior,
)
from assignor.errors import CopartitionMismatch
from assignor.placement.state import ClientInput
from encoding import TaskId
from tests.assignor.embedding.clusters import CHANGELOG, PARTS, Cluster

SETTINGS = InternalTopicSettings()
STATELESS = Topology().add_source("w", topics=["words"]).subtopologies("app")


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch):
    monkeypatch.setattr(InternalTopicManager, "start", lambda _: None)


def query(watch):
    """Query the cluster once, as the thread does."""
    watch._provider._query(0.0)


def begun(cluster, settings=SETTINGS, parts=PARTS):
    errors, ready = [], []
    watch = ClusterWatch(parts, settings)
    watch.begin(lambda: cluster, on_ready=lambda: ready.append(1), on_error=errors.append)
    return watch, ready, errors


@pytest.mark.parametrize(("settings", "parts"), [(None, PARTS), (SETTINGS, STATELESS)])
def test_nothing_waits_where_nobody_looks(settings, parts):
    watch, _, _ = begun(Cluster(words=2), settings, parts)
    assert not watch.is_on
    knowledge = watch.knowledge({"words": 2})
    assert (dict(knowledge.waits), knowledge.end_offset_sums) == ({}, None)
    watch.join()
    watch.led()
    assert watch.partition_counts() == {}
    watch.close()


def test_before_the_first_look_tasks_wait_and_after_it_they_do_not():
    watch, ready, _ = begun(Cluster(words=2))
    assert list(watch.knowledge({"words": 2}).waits) == [0]
    watch.join()
    watch.led()
    query(watch)
    assert ready
    knowledge = watch.knowledge({"words": 2})
    assert not knowledge.waits
    assert knowledge.end_offset_sums == {TaskId(0, 0): 5, TaskId(0, 1): 5}
    assert watch.partition_counts() == {"words": 2, CHANGELOG: 2}
    watch.close()


def test_a_count_that_the_client_does_not_know_is_filled_in():
    watch, _, _ = begun(Cluster(words=3))
    query(watch)
    assert watch.knowledge({"words": 0}).partition_counts == {"words": 3}
    assert watch.knowledge({"words": 4}).partition_counts == {"words": 4}
    watch.close()


def test_topics_that_do_not_fit_are_the_leaders_error_and_no_querys():
    parts = (
        Topology()
        .add_source("s", topics=["a", "b"])
        .add_processor("p", parents=["s"])
        .add_state_store("counts", processors=["p"])
        .copartition("a", "b")
        .subtopologies("app")
    )
    watch, _, errors = begun(Cluster(a=1, b=2), parts=parts)
    query(watch)
    assert "a has 1, b has 2" in errors[0]
    with pytest.raises(CopartitionMismatch):
        watch.knowledge({"a": 1, "b": 2})
    watch.close()


def state(ends):
    tasks = [TaskId(0, p) for p in range(4)]
    clients = [
        ClientInput(process_id="old", active_tasks=frozenset(tasks)),
        ClientInput(process_id="new"),
    ]
    return group_state(tasks=tasks, stateful_tasks=tasks, clients=clients, end_offset_sums=ends)


def test_with_known_lags_tasks_spread_and_with_unknown_ones_they_stay():
    known = lags_or_prior(state(dict.fromkeys((TaskId(0, p) for p in range(4)), 0)))
    assert np.bincount(known.active).tolist() == [2, 2]
    unknown = lags_or_prior(state(None))
    assert len(set(unknown.active.tolist())) == 1
    assert unknown.followup
