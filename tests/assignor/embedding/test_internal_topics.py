"""Required internal topics and rejected ones; without a broker."""

from dataclasses import replace

import pytest

from assignor import ConfigError, Topology
from assignor.embedding import (
    ExistingTopic,
    InternalTopicSettings,
    InternalTopicStatus,
    LeaderFacts,
    internal_topics,
    knowledge_of,
    setting_warnings,
    topic_problem,
)
from assignor.topology import plan_tasks
from encoding import TaskId, TopicPartition

REPARTITIONED = (
    Topology()
    .add_repartition_topic("by-word")
    .add_source("lines", topics=["lines"])
    .add_sink("out", topic="by-word", parents=["lines"])
    .add_source("words", topics=["by-word"])
    .add_processor("count", parents=["words"])
    .add_state_store("counts", processors=["count"])
)
PARTS = REPARTITIONED.subtopologies("app")
COUNTS = "app-counts-changelog"
BY_WORD = "app-by-word-repartition"


def wanted(**counts):
    plan = plan_tasks(PARTS, counts)
    return {topic.name: topic for topic in internal_topics(PARTS, plan)}


def test_names_counts_and_policies_are_those_of_kafka_streams():
    topics = wanted(lines=4)
    assert sorted(topics) == [BY_WORD, COUNTS]
    assert [topics[n].partitions for n in (BY_WORD, COUNTS)] == [4, 4]
    assert topics[COUNTS].configs["cleanup.policy"] == "compact"
    assert topics[BY_WORD].configs["cleanup.policy"] == "delete"
    assert topics[BY_WORD].configs["retention.ms"] == "-1"


def test_nothing_is_wanted_while_the_count_of_the_input_is_unknown():
    assert wanted() == {}


def test_a_source_topic_that_serves_as_changelog_is_not_created():
    topology = (
        Topology()
        .add_source("t", topics=["table"])
        .add_processor("p", parents=["t"])
        .add_state_store("s", processors=["p"], source_topic="table")
    )
    parts = topology.subtopologies("app")
    assert internal_topics(parts, plan_tasks(parts, {"table": 2})) == ()


def test_windows_go_by_age_a_day_after_nobody_needs_them():
    topology = (
        Topology()
        .add_source("w", topics=["words"])
        .add_processor("p", parents=["w"])
        .add_state_store("windows", processors=["p"], retention_ms=3_600_000)
    )
    parts = topology.subtopologies("app")
    (topic,) = internal_topics(parts, plan_tasks(parts, {"words": 2}))
    assert topic.configs["cleanup.policy"] == "compact,delete"
    assert topic.configs["retention.ms"] == str(25 * 3_600_000)
    found = ExistingTopic(partitions=2, configs={"cleanup.policy": "compact,delete"})
    assert topic_problem(topic, found) is None


def test_settings_of_the_application_go_over_the_chosen_ones():
    plan = plan_tasks(PARTS, {"lines": 1})
    settings = InternalTopicSettings(configs={"min.insync.replicas": "2"})
    topics = internal_topics(PARTS, plan, settings)
    assert all(topic.configs["min.insync.replicas"] == "2" for topic in topics)


def test_a_wrong_count_is_refused_with_both_numbers():
    problem = topic_problem(wanted(lines=4)[COUNTS], ExistingTopic(partitions=3))
    assert "has 3 partitions instead of 4" in problem
    assert (
        ".kept, they have the only copies: add partitions to it, up to 4, and run assi" in problem
    )
    problem = topic_problem(wanted(lines=4)[COUNTS], ExistingTopic(partitions=5))
    remedy = "delete this topic alone, create it with 4 partitions, and run assignor write-back"
    assert f".kept, they have the only copies: {remedy}" in problem


@pytest.mark.parametrize(
    ("name", "policy", "is_refused"),
    [
        (COUNTS, "compact", False),
        (COUNTS, "compact,delete", False),
        (COUNTS, None, False),
        (COUNTS, "delete", True),
        (BY_WORD, "delete", False),
        (BY_WORD, "compact", True),
        (BY_WORD, "delete, compact", True),
    ],
)
def test_a_policy_that_loses_records_is_refused(name, policy, is_refused):
    found = ExistingTopic(partitions=4, configs={"cleanup.policy": policy} if policy else {})
    assert bool(topic_problem(wanted(lines=4)[name], found)) is is_refused


HOUR_MS = 3_600_000
TWO_STORES = (
    Topology()
    .add_source("w", topics=["words"])
    .add_processor("p", parents=["w"])
    .add_state_store("a", processors=["p"])
    .add_state_store("b", processors=["p"])
    .subtopologies("app")
)


def warned(*, kept_ms=24 * HOUR_MS, bytes_of_b="1048588", **settings):
    """Return the warnings of a task with two changelogs, of which one has these settings."""
    configs = {"delete.retention.ms": str(24 * HOUR_MS), "max.message.bytes": "1048588"}
    own = {"delete.retention.ms": str(kept_ms), "max.message.bytes": bytes_of_b}
    found = {
        "app-a-changelog": ExistingTopic(partitions=2, configs=configs),
        "app-b-changelog": ExistingTopic(partitions=2, configs=own),
    }
    return setting_warnings(TWO_STORES, found, InternalTopicSettings(configs=settings))


def test_a_changelog_that_forgets_deletions_too_early_is_named_with_the_command():
    (sentence,) = warned(kept_ms=HOUR_MS)
    assert sentence.startswith("changelog app-b-changelog has delete.retention.ms=3600000, and")
    assert (
        "kafka-configs --bootstrap-server HOST:PORT --alter --entity-type topics "
        "--entity-name app-b-changelog --add-config delete.retention.ms=86400000;"
    ) in sentence
    assert warned(kept_ms=HOUR_MS, **{"delete.retention.ms": str(HOUR_MS)}) == ()
    assert warned() == ()


def test_changelogs_of_one_task_that_take_records_of_other_sizes_are_named_with_the_command():
    (sentence,) = warned(bytes_of_b="65536")
    assert "app-b-changelog has max.message.bytes=65536, and app-a-changelog of the" in sentence
    assert sentence.endswith("--entity-name app-b-changelog --add-config max.message.bytes=1048588")


def test_settings_that_could_not_be_read_are_not_compared():
    found = {"app-a-changelog": ExistingTopic(partitions=2)}
    assert setting_warnings(TWO_STORES, found, InternalTopicSettings()) == ()


def test_a_policy_that_loses_state_is_named_with_the_command():
    found = ExistingTopic(partitions=4, configs={"cleanup.policy": "delete"})
    problem = topic_problem(wanted(lines=4)[COUNTS], found)
    assert problem.endswith(f"--entity-name {COUNTS} --add-config cleanup.policy=compact")
    windowed = replace(wanted(lines=4)[COUNTS], configs={"cleanup.policy": "compact,delete"})
    assert topic_problem(windowed, found).endswith("cleanup.policy=[compact,delete]")


def knowledge(**facts):
    return knowledge_of(LeaderFacts(**facts), PARTS, plan_tasks(PARTS, {"lines": 2}))


READY = {BY_WORD: InternalTopicStatus(partitions=2), COUNTS: InternalTopicStatus(partitions=2)}


def test_both_sides_of_a_repartition_topic_wait_for_it():
    waits = knowledge(topics={COUNTS: READY[COUNTS]}).waits
    assert sorted(waits) == [0, 1], "who writes it, and who reads it"
    assert not any(wait.refused for wait in waits.values())
    assert BY_WORD in waits[0].why


def test_only_the_subtopology_of_a_missing_changelog_waits():
    waits = knowledge(topics={BY_WORD: READY[BY_WORD]}).waits
    assert len(waits) == 1
    assert COUNTS in next(iter(waits.values())).why


def test_what_is_refused_goes_before_what_is_not_known():
    waits = knowledge(topics={COUNTS: InternalTopicStatus(partitions=9, problem="nine")}).waits
    refused = next(wait for wait in waits.values() if wait.refused)
    assert refused.why == "nine"


def test_nothing_waits_when_all_topics_are_there():
    assert knowledge(topics=READY).waits == {}


def test_topics_that_were_right_for_other_inputs_are_looked_at_again():
    waits = knowledge(topics=READY | {COUNTS: InternalTopicStatus(partitions=1)}).waits
    (wait,) = waits.values()
    assert "had 1 partitions" in wait.why
    assert "instead of the 2 needed now" in wait.why
    assert not wait.refused


def test_ends_add_up_by_task_and_a_missing_one_stays_unknown():
    counting = next(part.id for part in PARTS if part.is_stateful)
    ends = {TopicPartition(COUNTS, 0): 7}
    assert knowledge(topics=READY, end_offsets=ends).end_offset_sums == {TaskId(counting, 0): 7}
    assert knowledge(topics=READY).end_offset_sums is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"replication_factor": 0}, "replication_factor=0 is refused; give the number"),
        ({"replication_factor": -7}, "replication_factor=-7 is refused"),
        ({"replication_factor": 2**15}, "replication_factor=32768 is refused"),
        ({"replication_factor": "3"}, "replication_factor='3' is refused"),
        ({"configs": None}, "configs=None is refused; give settings of topics"),
        ({"configs": "a=b"}, "configs='a=b' is refused"),
        ({"configs": {"retention.ms": None}}, "configs=.*None.* is refused"),
        ({"configs": {"cleanup.policy": "delete"}}, "cleanup.policy=delete: changelogs must be"),
        ({"configs": {"delete.retention.ms": "9" * 5000}}, "delete.retention.ms=999.*at least"),
        ({"configs": {"delete.retention.ms": str(2**63)}}, "delete.retention.ms=92.*at least"),
    ],
)
def test_settings_that_no_broker_takes_are_refused(settings, why):
    with pytest.raises(ConfigError, match=why) as raised:
        InternalTopicSettings(**settings)
    assert len(str(raised.value)) < 400
    InternalTopicSettings(replication_factor=3, configs={"cleanup.policy": "compact,delete"})


@pytest.mark.parametrize("value", ["1000", "3599999", "-1", "a day"])
def test_tombstones_that_brokers_remove_before_copies_have_read_them_are_refused(value):
    with pytest.raises(ConfigError, match=f"delete.retention.ms={value}: .* at least 3600000"):
        InternalTopicSettings(configs={"delete.retention.ms": value})
    assert InternalTopicSettings().delete_retention_ms == 24 * 3600 * 1000
    assert InternalTopicSettings(configs={"delete.retention.ms": "3600000"}).delete_retention_ms
