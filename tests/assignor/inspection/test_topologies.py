"""`assignor inspect` in the middle of a rolling change of the topology."""

import json

import pytest
from rich.console import Console

from assignor import Topology
from assignor.cli.inspect.document import document_of
from assignor.cli.inspect.text import render_group
from assignor.inspection import inspect_group
from assignor.inspection.values import ClusterFacts, DescribedMember, TopicFacts
from encoding import NativeSubscription, TaskId, TopicPartition
from probing.topologies import lowered
from tests.assignor.inspection.described_groups import (
    assignment_bytes,
    group_of,
    member,
    metadata_bytes,
)
from tests.assignor.rebalance.forms.mixed_group import COUNTS, MixedGroup, counting

FACTS = ClusterFacts(topics={name: TopicFacts(partitions=n) for name, n in COUNTS.items()})
OLD, NEW = counting(), counting(2, stores=("counts", "totals"))


def inspected(group):
    """What is seen of the group of the last generation."""
    rows = [
        DescribedMember(
            member_id=f"app-{name}-1",
            client_id=f"app-{name}",
            metadata=metadata_bytes(group.sent[name], topics=("lines",)),
            assignment=assignment_bytes(
                group.last.answers[name].user_data, group.last.answers[name].partitions
            ),
        )
        for name in group.members
    ]
    return inspect_group(group_of(*rows), FACTS)


def changing(*programs, leader="a"):
    """A group of members `a`, `b`, ... with these programs, the last of which joined last."""
    group = MixedGroup()
    for number, program in enumerate(programs):
        group.start("abc"[number], *program)
        group.settle(leader)
    return group


def text_of(look, width=120):
    console = Console(width=width, record=True, file=None, quiet=True)
    console = Console(width=width)
    with console.capture() as captured:
        console.print(render_group(look, width=width, now_ms=0, tasks=True))
    return captured.get()


def clients(look, processes):
    names = {client.process: client.client for client in look.clients}
    return sorted(names[process] for process in processes)


@pytest.mark.parametrize("leader", ["a", "c"])
def test_a_group_in_the_middle_shows_who_runs_which_form(leader):
    group = changing((OLD,), (OLD,), (NEW,), leader="a")
    group.settle(leader)
    look = inspected(group)
    [family] = look.topologies.families
    old, new = family.forms
    assert (old.versions, new.versions) == ((1,), (2,))
    assert clients(look, old.carriers) == ["a", "b"]
    assert clients(look, new.carriers) == ["c"]
    assert (old.wanted, new.wanted, family.version, family.epoch) == (False, True, 2, 0)
    assert new.changelogs == ("app-counts-changelog", "app-totals-changelog")
    assert old.sources == new.sources == ("lines",)
    ran = {
        name: sorted(p for p, (owner, _) in group.owners("lines").items() if owner == name)
        for name in group.members
    }
    names = {client.process: client.client for client in look.clients}
    assert {names[p]: [*held] for f in family.forms for p, held in f.running.items()} == ran
    assert clients(look, family.held_by) == sorted(n for n in ("a", "b") if ran[n])
    assert family.waiting == ()
    text = text_of(look)
    assert "version 1 on a, b; version 2 on c" in text
    assert "move to this form" in text


def test_partitions_that_wait_are_a_finding_that_says_for_whom():
    group = changing((OLD,), (OLD,), (NEW,))
    group.stop("c")
    group.settle("a")
    look = inspected(group)
    lost = [p for p, form in enumerate(group.forms("lines")) if form is None]
    assert lost
    [family] = look.topologies.families
    assert family.waiting == tuple(TopicPartition("lines", p) for p in lost)
    [finding] = [f for f in look.findings if f.kind == "topology-waits"]
    assert f"lines-{lost[0]}" in finding.sentence
    assert "no member carries it or a later one: start such a member" in finding.sentence
    document = json.loads(json.dumps(document_of(look)))
    assert document["topology"]["families"][0]["waiting"] == [f"lines-{p}" for p in lost]


def test_a_source_that_the_version_that_runs_does_not_read_is_a_finding():
    """Two members stay with the old version of a chain; only the new one reads `more`."""
    old, new = (Topology(version=version) for version in (1, 2))
    old.add_source("a", topics=["lines"]).add_repartition_topic("r")
    old.add_sink("to-r", topic="r", parents=["a"]).add_source("b", topics=["r"])
    old.add_processor("count", parents=["b"]).add_state_store("counts", processors=["count"])
    new.add_source("a", topics=["lines", "more"]).add_processor("count", parents=["a"])
    new.add_state_store("counts", processors=["count"])
    group = changing((old,), (old,), (new,))
    assert not any(
        p.topic == "lines" for f in inspected(group).topologies.families for p in f.waiting
    )
    group.settle("a")
    look = inspected(group)
    [family] = look.topologies.families
    assert family.version == 1
    assert {p.topic for p in family.waiting} == {"more"}
    assert len(family.waiting) == COUNTS["more"]
    [finding] = [f for f in look.findings if f.kind == "topology-waits"]
    assert "no member reads more-0, more-1" in finding.sentence
    assert "change together, once more members can run version 2" in finding.sentence


def test_a_version_that_no_live_member_carries_is_a_finding():
    group = changing((OLD,), (NEW,))
    assert inspected(group).topologies.reached is None
    group.stop("b")
    group.settle("a")
    look = inspected(group)
    [finding] = [f for f in look.findings if f.kind.startswith("topology-")]
    assert "version 2" in finding.sentence
    assert "no member carries it or a later one" in finding.sentence
    assert document_of(look)["topology"]["reached"] == {"version": 2, "epoch": 0}


@pytest.mark.parametrize(("version", "kinds"), [(1, ["below-share"]), (2, [])])
def test_shares_are_not_judged_while_members_run_different_topologies(version, kinds):
    """Each partition is shared by those that can run its form, not by all."""
    rows = (
        member(
            name,
            native=NativeSubscription(fingerprint=bytes([number] * 8), topology_version=number),
            **tasks,
        )
        for name, number, tasks in (
            ("a", 1, {"active": [TaskId(0, 0), TaskId(0, 1)]}),
            ("b", version, {"standby": [TaskId(0, 1)]}),
        )
    )
    look = inspect_group(group_of(*rows))
    assert [f.kind for f in look.findings if f.kind == "below-share"] == kinds


def test_a_lowered_version_is_a_finding_until_the_members_have_it():
    group = changing((OLD,), (NEW,))
    for each in group.members.values():
        each.topology.reached = lowered(each.topology.reached, each.topology.reached, 1)
    kept = group.stop("a")
    group.start("a", NEW, reached=kept)
    group.settle("b")
    [finding] = [f for f in inspected(group).findings if f.kind == "topology-lowered"]
    assert "version 1 of the topology is remembered as reached" in finding.sentence
    kept = group.stop("a")
    group.start("a", OLD, reached=kept)
    group.settle("b")
    assert not [f for f in inspected(group).findings if f.kind == "topology-lowered"]


def test_contradicting_programs_of_one_version_are_distinguished():
    group = changing((OLD,), (counting(stores=("counts", "totals")),))
    look = inspected(group)
    [finding] = [f for f in look.findings if f.kind == "topology-differs"]
    first, second = (m.fingerprint[:8] for m in look.members)
    assert {f"version 1 ({first}) on a", f"version 1 ({second}) on b"} == {
        *finding.sentence.split(": ", 1)[1].split("; ")
    }
    contents = [form.fingerprint[:8] for form in look.topologies.families[0].forms]
    assert all(f"lines ({content})" in text_of(look) for content in contents)
    assert len(contents) == 2


def test_a_finished_change_shows_its_version_only():
    group = changing((NEW,), (NEW,))
    look = inspected(group)
    assert [*look.topologies.processes] == [2]
    assert not any(family.is_changing for family in look.topologies.families)
    assert "move to this form" not in text_of(look)


def test_groups_with_one_topology_of_version_1_show_nothing():
    assert inspected(changing((OLD,), (OLD,))).topologies is None
    assert inspect_group(group_of(member("a"), member("b"))).topologies is None


def test_tasks_of_other_numberings_read_their_own_topics():
    added = counting(2, sources=("lines", "other"), names={"other": "a-first"})
    group = changing((OLD,), (added,))
    look = inspected(group)
    reads = {(p.topic, p.partition) for task in look.tasks for p in task.inputs}
    assert reads == {(topic, p) for topic in ("lines", "other") for p in range(COUNTS[topic])}
    assert all(len(task.owners) == 1 for task in look.tasks)
    assert look.shape.loose_topics == ()
