"""Rolling changes of topologies with repartition topics, as in public reports."""

import pytest

from assignor import Topology
from system_tests.plan.topologies import PlannedTopology, topology_plan
from tests.assignor.rebalance.forms.watched_group import Watched, bounced, topology
from tests.probing.topologies.changes import ONE_TOPIC, TWO_TOPICS

SCANNERS = ("internal", "ossindex", "snyk")


@pytest.mark.parametrize("leader", ["m0", "m1"])
@pytest.mark.parametrize("change", sorted({**ONE_TOPIC, **TWO_TOPICS}))
def test_seldon_core_4569_a_new_pipeline_starts_before_the_old_one_is_deleted(change, leader):
    """Both have one application id; Kafka's client ends with an exception about its topics."""
    group = Watched(change, 1)
    group.start("m1", topology(change, 2))
    group.settle(leader)
    group.look()
    group.stop("m0")
    group.settle("m1")
    group.look()
    assert group.found.broken == []
    assert group.last.waiting == ()


def scanning(scanners):
    """A program of one version; each enabled scanner has a repartition topic."""
    built = Topology().add_source("lines", topics=["lines"])
    for scanner in scanners:
        built.add_repartition_topic(scanner)
        built.add_sink(f"to-{scanner}", topic=scanner, parents=["lines"])
        built.add_source(scanner, topics=[scanner])
        built.add_processor(f"p-{scanner}", parents=[scanner])
        built.add_state_store(f"store-{scanner}", processors=[f"p-{scanner}"])
    return built


def test_hyades_796_instances_add_their_scanners_in_another_order():
    """Numbers of subtopologies depend on the order; their content, which counts here, does not."""
    group = Watched("add", 0)
    for number, order in enumerate((SCANNERS, SCANNERS[::-1], SCANNERS[1:] + SCANNERS[:1])):
        group.start(f"m{number}", scanning(order))
    group.settle("m1")
    assert group.last.waiting == ()
    assert not group.last.warnings
    assert running(group) == {
        (topic, number) for topic in ("lines", *SCANNERS) for number in range(2)
    }


def running(group):
    """Topics, by their short names, and partitions that members read."""
    return {
        (p.topic.removeprefix("app-").removesuffix("-repartition"), p.partition)
        for member in group.members.values()
        for partitions in member.held.active.values()
        for p in partitions
    }


def test_hyades_796_an_instance_has_a_scanner_that_others_have_not_enabled():
    """Programs of one version differ in a branch: its topic is read as long as members write it."""
    group = Watched("add", 0)
    for number, scanners in enumerate((SCANNERS, SCANNERS[:2], SCANNERS[:2])):
        group.start(f"m{number}", scanning(scanners))
    group.settle("m1")
    assert group.last.waiting == ()
    assert {topic for topic, _ in running(group)} == {"lines", *SCANNERS}
    group.stop("m0")
    group.settle("m1")
    assert {topic for topic, _ in running(group)} == {"lines", *SCANNERS[:2]}


def test_kafka_7406_two_repartition_topics_are_merged_into_the_first():
    """Kafka's optimiser does it, and its authors recommend a reset of the application."""
    for members in (2, 3, 4):
        group = bounced("topics merged", members, range(members), members - 1)
        assert group.found.broken == []
    sides = (
        PlannedTopology(version=n, subtopologies=topology("topics merged", n).subtopologies("app"))
        for n in (1, 2)
    )
    plan = topology_plan(*sides)
    [left] = {part.left for part in plan.subtopologies if part.left}
    assert left == ("app-rr-repartition",)
    assert any("app-rr-repartition" in sentence for sentence in plan.warnings)
