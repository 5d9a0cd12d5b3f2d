"""Queries of the cluster, one by one and on the thread; the cluster is slow or fails on demand."""

import threading

import pytest

from assignor import Topology
from assignor.embedding import ClusterUnavailable, InternalTopicManager
from tests.assignor.embedding.clusters import CHANGELOG, LIMIT_S, PARTS, Cluster, until
from tests.log_records import records_of


@pytest.fixture
def running(clock):
    """Make a manager whose thread runs."""
    made = []

    def make(cluster, **options):
        provider = InternalTopicManager(lambda: cluster, PARTS, **options)
        provider.start()
        made.append(provider)
        return provider

    yield make
    for provider in made:
        provider.close()


def provider_of(cluster, parts=PARTS, **options):
    """Make a manager without its thread, for queries one by one."""
    return InternalTopicManager(lambda: cluster, parts, **options)


def looked(provider):
    """Query once; return the facts."""
    provider._query(0.0)
    return provider.facts()


def test_a_follower_queries_and_creates_nothing():
    cluster = Cluster(words=4)
    provider = provider_of(cluster)
    provider.join()
    assert looked(provider).topics == {}
    assert cluster.created == []


def test_a_leader_creates_missing_topics_and_gets_a_rebalance_afterwards():
    cluster, ready = Cluster(words=4), []
    provider = provider_of(cluster, on_ready=lambda: ready.append("ready"))
    provider.join()
    provider.lead(looked(provider), waits=True)
    facts = looked(provider)
    assert ready == ["ready"]
    assert cluster.created == [CHANGELOG]
    assert facts.topics[CHANGELOG].partitions == 4
    assert len(facts.end_offsets) == 4


def test_a_leader_whose_answer_is_still_right_is_left_alone():
    cluster, ready = Cluster(words=4, **{CHANGELOG: 4}), []
    provider = provider_of(cluster, on_ready=lambda: ready.append("ready"))
    provider.join()
    used = looked(provider)
    cluster.ends = 6
    provider.lead(used, waits=True)
    assert set(looked(provider).end_offsets.values()) == {6}
    assert ready == []


def test_a_topic_that_was_there_in_time_is_not_missed():
    """The query ends between the reading of the facts and the answer."""
    cluster, ready = Cluster(words=4, **{CHANGELOG: 4}), []
    provider = provider_of(cluster, on_ready=lambda: ready.append("ready"))
    before = provider.facts()
    provider.join()
    looked(provider)
    provider.lead(before, waits=True)
    looked(provider)
    assert ready == ["ready"]


def test_who_led_the_generation_before_requests_no_rebalance():
    ready = []
    provider = provider_of(
        Cluster(words=4, **{CHANGELOG: 4}), on_ready=lambda: ready.append("ready")
    )
    provider.lead(provider.facts(), waits=False)
    provider.join()
    assert looked(provider).topics, "they differ from those that the answer was based on"
    assert ready == []


def test_a_changelog_that_forgets_deletions_is_a_warning_once_and_again_after_a_correction(caplog):
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    cluster.configs = {"delete.retention.ms": "1000"}
    provider = provider_of(cluster)

    def look():
        looked(provider)
        return sum(each.levelname == "WARNING" for each in records_of(caplog))

    assert (look(), look()) == (1, 1)
    assert f"changelog {CHANGELOG} has delete.retention.ms=1000" in caplog.text
    assert provider.facts().topics[CHANGELOG].problem == ""
    cluster.configs = {}
    assert look() == 1
    cluster.configs = {"delete.retention.ms": "1000"}
    assert look() == 2


def test_a_wrong_count_is_reported_once_and_corrected_without_a_restart():
    cluster, errors, ready = Cluster(words=4, **{CHANGELOG: 3}), [], []
    provider = provider_of(cluster, on_ready=lambda: ready.append("ready"), on_error=errors.append)
    provider.join()
    provider.lead(looked(provider), waits=True)
    assert provider._query(0.0) > 0, "it queries again by itself"
    assert "has 3 partitions instead of 4" in provider.facts().topics[CHANGELOG].problem
    cluster.topics[CHANGELOG] = 4
    assert provider._query(0.0) == 0
    assert ready == ["ready"]
    assert len(errors) == 1
    assert cluster.created == []


def test_a_topic_that_cannot_be_created_is_a_sentence_and_tried_again():
    cluster, errors, ready = Cluster(words=4), [], []
    cluster.refusal = "no rights"
    provider = provider_of(cluster, on_ready=lambda: ready.append("ready"), on_error=errors.append)
    provider.join()
    provider.lead(looked(provider), waits=True)
    assert provider._query(0.0) > 0
    assert provider.facts().topics[CHANGELOG].problem == "no rights"
    cluster.refusal = ""
    assert provider._query(0.0) == 0
    assert ready == ["ready"]
    assert errors == ["no rights"]


def test_an_unavailable_cluster_is_a_warning_once_and_queried_again_on_a_new_connection(caplog):
    caplog.set_level("INFO")
    cluster, errors = Cluster(words=4), []
    cluster.failure = ClusterUnavailable("no broker answered")
    provider = provider_of(cluster, on_error=errors.append)
    provider.join()
    pauses = [0.0]
    for number in range(12):
        pauses.append(provider._query(pauses[-1]))
        cluster.failure = ClusterUnavailable(f"no broker answered {number}")
    assert pauses[1:4] == [0.2, 0.4, 0.8]
    assert max(pauses) == 60.0
    assert cluster.closed == 12
    cluster.failure = None
    assert looked(provider).partition_counts
    failed = "the cluster query failed: no broker answered; tasks run, and lags are unknown until"
    assert [(each.levelname, each.getMessage()) for each in records_of(caplog)] == [
        ("WARNING", f"{failed} it succeeds"),
        ("INFO", "the cluster can be queried again"),
    ]
    assert errors == []  # nothing in the application is to be corrected


def test_whatever_a_client_raises_the_query_is_repeated():
    cluster, errors = Cluster(words=4), []
    cluster.failure = ZeroDivisionError("a defect")
    provider = provider_of(cluster, on_error=errors.append)
    provider.join()
    assert provider._query(0.0) > 0
    assert errors == ["the cluster query failed: ZeroDivisionError: a defect"]
    cluster.failure = None
    assert looked(provider).partition_counts


def test_ends_that_are_too_old_are_unknown():
    now = [0.0]
    provider = provider_of(Cluster(words=4, **{CHANGELOG: 4}), now=lambda: now[0])
    assert looked(provider).end_offsets is not None
    now[0] = 31.0
    assert provider.facts().end_offsets is None
    assert provider.facts().topics, "that a topic is there stays known"


def test_the_age_of_end_offsets_counts_from_the_request():
    """A slow answer is as old as its question: members write on while it is on its way."""
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    answer = cluster.end_offsets

    def slow(partitions):
        now[0] = 20.0
        return answer(partitions)

    cluster.end_offsets = slow
    provider = provider_of(cluster, now=lambda: now[0])
    assert looked(provider).end_offsets
    now[0] = 31.0
    assert provider.facts().end_offsets is None


def test_a_table_ends_where_the_group_committed():
    parts = (
        Topology()
        .add_source("t", topics=["table"])
        .add_processor("p", parents=["t"])
        .add_state_store("s", processors=["p"], source_topic="table")
        .subtopologies("app")
    )
    assert set(looked(provider_of(Cluster(table=2), parts)).end_offsets.values()) == {3}


def test_reading_and_asking_never_wait_for_a_slow_cluster(running):
    cluster = Cluster(words=4)
    cluster.gate.clear()
    provider = running(cluster)
    provider.join()
    # All of this happens during one slow query.
    for _ in range(1000):
        provider.lead(provider.facts(), waits=True)
        provider.join()
    assert provider.facts().topics == {}
    cluster.gate.set()
    until(lambda: provider.facts().partition_counts)


def test_the_thread_queries_until_the_cluster_answers(running):
    cluster = Cluster(words=4)
    cluster.failure = ClusterUnavailable("no broker answered")
    provider = running(cluster)
    provider.join()
    until(lambda: cluster.closed > 1)
    cluster.failure = None
    until(lambda: provider.facts().partition_counts)


def test_a_leader_that_may_wait_gets_end_offsets_that_are_not_old(running):
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    provider = running(cluster, now=lambda: now[0])
    # Nothing waits for the first end offsets.
    assert provider.facts(patience_s=LIMIT_S).end_offsets is None
    provider.join()
    until(lambda: provider.facts().end_offsets)
    cluster.ends = 6
    assert set(provider.facts(patience_s=LIMIT_S).end_offsets.values()) == {5}
    now[0] = 1.1
    assert set(provider.facts().end_offsets.values()) == {5}
    assert set(provider.facts(patience_s=LIMIT_S).end_offsets.values()) == {6}


def test_of_a_cluster_that_is_slow_the_known_end_offsets_are_used(running):
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    provider = running(cluster, now=lambda: now[0])
    provider.join()
    until(lambda: provider.facts().end_offsets)
    now[0] = 1.1
    cluster.gate.clear()
    assert set(provider.facts(patience_s=0.01).end_offsets.values()) == {5}
    cluster.gate.set()


def test_closing_ends_the_thread_and_the_connections(running):
    cluster = Cluster(words=1)
    provider = running(cluster)
    provider.join()
    until(lambda: provider.facts().partition_counts)
    provider.close()
    assert cluster.closed == 1
    assert not provider._thread.is_alive()


def test_closing_ends_the_wait_for_end_offsets(running):
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    provider = running(cluster, now=lambda: now[0])
    provider.join()
    until(lambda: provider.facts().end_offsets)
    now[0] = 1.1
    cluster.gate.clear()
    waiting = threading.Thread(
        target=provider.facts, kwargs={"patience_s": 10 * LIMIT_S}, daemon=True
    )
    waiting.start()
    provider.close(timeout_s=0)
    waiting.join(LIMIT_S)
    still_waits = waiting.is_alive()
    cluster.gate.set()
    assert not still_waits
