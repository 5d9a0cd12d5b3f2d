"""The thread that queries the cluster, with a cluster in memory that can be slow or fail."""

import threading

import pytest

from assignor import Topology
from assignor.embedding import ClusterUnavailable, InternalTopicManager
from tests.assignor.embedding.clusters import CHANGELOG, LIMIT_S, PARTS, Cluster, until
from tests.log_records import records_of


@pytest.fixture
def provider_of():
    made = []

    def make(cluster, parts=PARTS, **options):
        provider = InternalTopicManager(lambda: cluster, parts, **options)
        provider.start()
        made.append(provider)
        return provider

    yield make
    for provider in made:
        provider.close()


def looked(provider):
    until(lambda: provider.facts().partition_counts)
    return provider.facts()


def test_a_follower_queries_and_creates_nothing(provider_of):
    cluster = Cluster(words=4)
    provider = provider_of(cluster)
    provider.join()
    assert looked(provider).topics == {}
    assert cluster.created == []


def test_a_leader_creates_missing_topics_and_gets_a_rebalance_afterwards(provider_of):
    cluster, ready = Cluster(words=4), threading.Event()
    provider = provider_of(cluster, on_ready=ready.set)
    provider.join()
    used = looked(provider)
    provider.lead(used, waits=True)
    assert ready.wait(LIMIT_S)
    assert cluster.created == [CHANGELOG]
    facts = provider.facts()
    assert facts.topics[CHANGELOG].partitions == 4
    assert len(facts.end_offsets) == 4


def test_a_leader_whose_answer_is_still_right_is_left_alone(provider_of):
    cluster, ready = Cluster(words=4, **{CHANGELOG: 4}), threading.Event()
    provider = provider_of(cluster, on_ready=ready.set)
    provider.join()
    used = looked(provider)
    cluster.ends = 6
    provider.lead(used, waits=True)
    until(lambda: set(provider.facts().end_offsets.values()) == {6})
    assert not ready.is_set()


def test_a_topic_that_was_there_in_time_is_not_missed(provider_of):
    """The query ends between the reading of the facts and the answer."""
    cluster, ready = Cluster(words=4, **{CHANGELOG: 4}), threading.Event()
    provider = provider_of(cluster, on_ready=ready.set)
    before = provider.facts()
    provider.join()
    looked(provider)
    provider.lead(before, waits=True)
    assert ready.wait(LIMIT_S)


def test_who_led_the_generation_before_requests_no_rebalance():
    ready = threading.Event()
    provider = InternalTopicManager(
        lambda: Cluster(words=4, **{CHANGELOG: 4}), PARTS, on_ready=ready.set
    )
    provider.lead(provider.facts(), waits=False)
    provider.join()
    provider.start()
    until(lambda: provider._looked)
    provider.close()
    assert provider.facts().topics, "they differ from those that the answer was based on"
    assert not ready.is_set()


def test_a_changelog_that_forgets_deletions_is_a_warning_once_and_again_after_a_correction(
    provider_of, caplog
):
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    cluster.configs = {"delete.retention.ms": "1000"}
    provider = provider_of(cluster)

    def look():
        before = provider._looked
        provider.join()
        until(lambda: provider._looked > before)
        return sum(each.levelname == "WARNING" for each in records_of(caplog))

    assert (look(), look()) == (1, 1)
    assert f"changelog {CHANGELOG} has delete.retention.ms=1000" in caplog.text
    assert provider.facts().topics[CHANGELOG].problem == ""
    cluster.configs = {}
    assert look() == 1
    cluster.configs = {"delete.retention.ms": "1000"}
    assert look() == 2


def test_a_wrong_count_is_reported_once_and_corrected_without_a_restart(provider_of):
    cluster, errors, ready = Cluster(words=4, **{CHANGELOG: 3}), [], threading.Event()
    provider = provider_of(cluster, on_ready=ready.set, on_error=errors.append)
    provider.join()
    provider.lead(looked(provider), waits=True)
    until(lambda: provider.facts().topics)
    assert "has 3 partitions instead of 4" in provider.facts().topics[CHANGELOG].problem
    cluster.topics[CHANGELOG] = 4
    assert ready.wait(LIMIT_S)
    assert len(errors) == 1
    assert cluster.created == []


def test_a_topic_that_cannot_be_created_is_a_sentence_and_tried_again(provider_of):
    cluster, errors, ready = Cluster(words=4), [], threading.Event()
    cluster.refusal = "no rights"
    provider = provider_of(cluster, on_ready=ready.set, on_error=errors.append)
    provider.join()
    provider.lead(looked(provider), waits=True)
    until(lambda: errors)
    assert provider.facts().topics[CHANGELOG].problem == "no rights"
    cluster.refusal = ""
    assert ready.wait(LIMIT_S)
    assert errors == ["no rights"]


def test_an_unavailable_cluster_is_reported_once_and_queried_again_on_a_new_connection(provider_of):
    cluster, errors = Cluster(words=4), []
    cluster.failure = ClusterUnavailable("no broker answered")
    provider = provider_of(cluster, on_error=errors.append)
    provider.join()
    until(lambda: cluster.closed > 1)
    assert errors == ["no broker answered"]
    cluster.failure = None
    looked(provider)


def test_whatever_a_client_raises_the_thread_goes_on(provider_of):
    cluster, errors = Cluster(words=4), []
    cluster.failure = ZeroDivisionError("a defect")
    provider = provider_of(cluster, on_error=errors.append)
    provider.join()
    until(lambda: errors)
    assert errors == ["ZeroDivisionError: a defect"]
    cluster.failure = None
    looked(provider)


def test_reading_and_asking_never_wait_for_a_slow_cluster(provider_of):
    cluster = Cluster(words=4)
    cluster.gate.clear()
    provider = provider_of(cluster)
    provider.join()
    # All of this happens during one slow query.
    for _ in range(1000):
        provider.lead(provider.facts(), waits=True)
        provider.join()
    assert provider.facts().topics == {}
    cluster.gate.set()
    looked(provider)


def test_ends_that_are_too_old_are_unknown(provider_of):
    now = [0.0]
    provider = provider_of(Cluster(words=4, **{CHANGELOG: 4}), now=lambda: now[0])
    provider.join()
    assert looked(provider).end_offsets is not None
    now[0] = 31.0
    assert provider.facts().end_offsets is None
    assert provider.facts().topics, "that a topic is there stays known"


def test_the_age_of_end_offsets_counts_from_the_request(provider_of):
    """A slow answer is as old as its question: members write on while it is on its way."""
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    answer = cluster.end_offsets

    def slow(partitions):
        now[0] = 20.0
        return answer(partitions)

    cluster.end_offsets = slow
    provider = provider_of(cluster, now=lambda: now[0])
    provider.join()
    until(lambda: provider.facts().end_offsets)
    now[0] = 31.0
    assert provider.facts().end_offsets is None


def test_a_leader_that_may_wait_gets_end_offsets_that_are_not_old(provider_of):
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    provider = provider_of(cluster, now=lambda: now[0])
    # Nothing waits for the first end offsets.
    assert provider.facts(patience_s=LIMIT_S).end_offsets is None
    provider.join()
    until(lambda: provider.facts().end_offsets)
    cluster.ends = 6
    assert set(provider.facts(patience_s=LIMIT_S).end_offsets.values()) == {5}
    now[0] = 1.1
    assert set(provider.facts().end_offsets.values()) == {5}
    assert set(provider.facts(patience_s=LIMIT_S).end_offsets.values()) == {6}


def test_of_a_cluster_that_is_slow_the_known_end_offsets_are_used(provider_of):
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    provider = provider_of(cluster, now=lambda: now[0])
    provider.join()
    until(lambda: provider.facts().end_offsets)
    now[0] = 1.1
    cluster.gate.clear()
    assert set(provider.facts(patience_s=0.01).end_offsets.values()) == {5}
    cluster.gate.set()


def test_a_table_ends_where_the_group_committed(provider_of):
    parts = (
        Topology()
        .add_source("t", topics=["table"])
        .add_processor("p", parents=["t"])
        .add_state_store("s", processors=["p"], source_topic="table")
        .subtopologies("app")
    )
    provider = provider_of(Cluster(table=2), parts)
    provider.join()
    assert set(looked(provider).end_offsets.values()) == {3}


def test_closing_ends_the_thread_and_the_connections(provider_of):
    cluster = Cluster(words=1)
    provider = provider_of(cluster)
    provider.join()
    looked(provider)
    provider.close()
    assert cluster.closed == 1
    assert not provider._thread.is_alive()


def test_closing_ends_the_wait_for_end_offsets(provider_of):
    now = [0.0]
    cluster = Cluster(words=4, **{CHANGELOG: 4})
    provider = provider_of(cluster, now=lambda: now[0])
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
