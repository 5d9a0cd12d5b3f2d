"""Real leaders and members through changes of repartition topics: every record reaches its stores.

The changes and the oracle are those of the exploration (`tests/probing/topologies`).
"""

from itertools import permutations
from unittest import mock

import pytest

from assignor import Topology
from assignor.topology import exclusive_topics
from probing.topologies import decide, families, units
from tests.assignor.rebalance.forms import mixed_group
from tests.assignor.rebalance.forms.mixed_group import MixedGroup
from tests.nightly import sample
from tests.probing.topologies.changes import CHANGES, ONE_TOPIC, TWO_TOPICS, is_repartition
from tests.probing.topologies.model import PARTITIONS, Decided, Found, Model, Slot, State

REPEATED = {**ONE_TOPIC, **TWO_TOPICS}


@pytest.fixture(autouse=True)
def counts(monkeypatch):
    topics = {t for programs in CHANGES.values() for p in programs for s in p for t in s.sources}
    monkeypatch.setattr(mixed_group, "COUNTS", dict.fromkeys(sorted(topics), len(PARTITIONS)))


def topology(change, version):
    """A program of a change; its topics and stores have the names of the change."""
    built = Topology(version=version)
    parts = CHANGES[change][version - 1]
    for topic in sorted({t for p in parts for t in (*p.sources, *p.sinks)}):
        if is_repartition(topic):
            built.add_repartition_topic(topic)
    for part in parts:
        name = "-".join(sorted(part.sources))
        built.add_source(name, topics=sorted(part.sources))
        built.add_processor(f"p-{name}", parents=[name])
        for log in sorted(part.logs):
            built.add_state_store(log, processors=[f"p-{name}"])
        for sink in sorted(part.sinks):
            built.add_sink(f"{name}-to-{sink}", topic=sink, parents=[f"p-{name}"])
    return built


class Watched(MixedGroup):
    """A group of a change, with the oracle of its model."""

    def __init__(self, change, members, *, cooperative=False):
        super().__init__(cooperative=cooperative)
        self.change = change
        self.model = Model(change, 1, members=members)
        self.found = Found()
        for number in range(members):
            self.start(f"m{number}", topology(change, 1))
        self.settle("m0")

    def program(self, name):
        return max(self.programs[name].all_versions)

    def form(self, name, task):
        """The name that the change gives to the subtopology of a member's task."""
        sources = {
            topic.removeprefix("app-").removesuffix("-repartition")
            for topic in self.programs[name].subtopologies[task.subtopology].source_topics
        }
        parts = self.model.parts(self.program(name))
        return next(form for form, part in parts.items() if part.sources == sources)

    def uses(self):
        """Member -> topics of which it uses partitions alone, with the partition."""
        return {
            name: {
                (topic, task.partition)
                for task in member.held.active
                for topic in exclusive_topics(self.programs[name].subtopologies[task.subtopology])
            }
            for name, member in self.members.items()
        }

    def rebalance(self, leader, **options):
        """As before; under the cooperative protocol nothing starts before its owner gave it up."""
        before = self.uses()
        received = super().rebalance(leader, **options)
        for name, used in self.uses().items() if self.cooperative else ():
            for other, had in before.items():
                assert other == name or not (used - before[name]) & had
        assert not [w for w in self.last.warnings if "gets no tasks" in w]
        return received

    def look(self):
        """Follow the records, as the group rests."""
        slots = tuple(
            Slot(
                program=self.program(name),
                running=frozenset((self.form(name, t), t.partition) for t in member.held.active),
            )
            for name, member in sorted(self.members.items())
        )
        everything = {
            (t, p) for topics in self.model.topics.values() for t in topics for p in (0, 1)
        }
        decided = Decided(given={}, waiting=everything if self.last.waiting else set())
        before = self.found.reported
        self.model.check(State(slots=slots, crashes=0), self.found)
        self.model.check_records(State(slots=slots, crashes=0), decided, self.found)
        if self.found.reported > before:
            assert self.last.waiting
            assert self.last.waiting_tasks > 0

    def bounce(self, name, leader):
        kept = self.stop(name)
        if self.members:
            self.settle(leader if leader in self.members else min(self.members))
            self.look()
        self.start(name, topology(self.change, 2), reached=kept)
        self.settle(leader)
        self.look()


def bounced(change, members, order, leader, *, cooperative=False):
    group = Watched(change, members, cooperative=cooperative)
    for number in order:
        group.bounce(f"m{number}", f"m{leader}")
    return group


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_records_reach_their_stores_in_every_mix_of_old_and_new_members(change, cooperative):
    for members in (2, 3, 4):
        orders = list(permutations(range(members)))
        for order in sample(orders, every=12, reason="every order of bounces: 10 minutes"):
            group = bounced(change, members, order, order[-1], cooperative=cooperative)
            assert group.found.broken == []
            assert group.found.records > 0


@pytest.mark.parametrize("change", sorted(REPEATED))
def test_a_crash_and_a_lost_canary_stop_nothing_in_silence(change):
    for members in (2, 3, 4):
        group = Watched(change, members)
        group.bounce("m0", "m1")
        kept = group.stop("m0")
        group.settle("m1")
        group.look()
        assert group.found.broken == []
        group.start("m0", topology(change, 2), reached=kept)
        group.settle("m1")
        group.stop("m1")
        group.settle("m0")
        group.look()
        assert group.found.broken == []


def one_by_one(members, topics):
    live = {form: topics[form] for member in members for form in member.forms}
    return [(family, False) for family in families(live)]


def first_owner(family, running, members, topics):
    del family, members, topics
    name = next(iter(running))
    return dict.fromkeys(running[name], name)


def test_partitions_that_change_one_by_one_lose_records_of_repartition_topics():
    """The fault that was there: a partition has one form, and each partition changes alone."""
    with (
        mock.patch.object(decide, "joined_families", one_by_one),
        mock.patch.object(units, "_kept_forms", first_owner),
    ):
        broken = bounced("removed", 4, (3, 2, 1, 0), 0).found.broken
    words = [b.sentence for b in broken if b.rule == "records do not reach their store"]
    assert any(w.startswith("lines-0: stay in lines-0, which no member reads") for w in words)


@pytest.mark.parametrize("change", ["removed", "moved", "swapped", "both added"])
def test_a_chain_that_changes_one_partition_at_a_time_is_found(change):
    with mock.patch.object(decide, "joined_families", one_by_one):
        assert any(
            bounced(change, members, range(members), members - 1).found.broken
            for members in (2, 3, 4)
        )


def test_the_first_new_members_leave_a_chain_to_the_old_ones():
    group = Watched("removed", 4)
    versions = []
    for name in ("m3", "m2", "m1"):
        group.bounce(name, "m0")
        versions.append({group.program(m) for m in group.members if group.members[m].held.active})
    assert versions == [{1}, {1}, {2}]
    assert group.last.waiting == ()


def test_a_source_that_only_the_new_version_reads_is_reported_while_it_waits():
    group = Watched("moved to a new source", 3)
    group.bounce("m2", "m0")
    [sentence] = group.last.waiting
    assert sentence.startswith("2 partitions of x wait: one version of the topology reads them")
    assert "once more members can run version 2 (1 now) than cannot (2 now)" in sentence
    assert group.last.waiting_tasks == len(PARTITIONS)
    group.bounce("m1", "m0")
    assert group.last.waiting == ()
