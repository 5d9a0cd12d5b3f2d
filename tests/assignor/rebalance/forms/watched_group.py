"""A group of real leaders and members in a change of the exploration, with the oracle of its model.

The changes and the oracle are those of `tests/probing/topologies`.
"""

from assignor import Topology
from assignor.topology import exclusive_topics
from tests.assignor.rebalance.forms.mixed_group import MixedGroup
from tests.probing.topologies.changes import CHANGES, is_repartition
from tests.probing.topologies.model import PARTITIONS, Decided, Found, Model, Slot, State

COUNTS = {
    topic: len(PARTITIONS)
    for programs in CHANGES.values()
    for program in programs
    for part in program
    for topic in sorted(part.sources)
}


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

    counts = COUNTS

    def __init__(self, change, members, *, cooperative=False):
        super().__init__(cooperative=cooperative)
        self.change = change
        self.model = Model(change, 1, members=members)
        self.found = Found()
        for number in range(members):
            self.start(f"m{number}", topology(change, 1))
        if members:
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
        refused = [w for w in self.last.warnings if "gets no tasks" in w and "is asked" not in w]
        assert not refused
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

    def bounce(self, name, leader, version=2):
        kept = self.stop(name)
        if self.members:
            self.settle(leader if leader in self.members else min(self.members))
            self.look()
        self.start(name, topology(self.change, version), reached=kept)
        self.settle(leader)
        self.look()


def bounced(change, members, order, leader, *, cooperative=False):
    group = Watched(change, members, cooperative=cooperative)
    for number in order:
        group.bounce(f"m{number}", f"m{leader}")
    return group
