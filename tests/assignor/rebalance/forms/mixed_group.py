"""A group in memory whose members run programs with different topologies."""

from dataclasses import replace
from uuid import UUID

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    StreamsMember,
    Topology,
    assign_group,
    sticky,
)
from assignor.topology.changes import carried_topologies
from probing import RejoinNow, ScheduleRebalance, find_release
from probing.features import UNKNOWN_LEVELS

COUNTS = {"lines": 4, "other": 2, "more": 2}
NATIVE = find_release("native")


def counting(version=1, *, stores=("counts",), sources=("lines",), names=None):
    """A subtopology for each topic; the stores belong to the topic `lines`."""
    topology = Topology(version=version)
    for topic in sources:
        name = (names or {}).get(topic, topic)
        topology.add_source(name, topics=[topic]).add_processor(f"p-{name}", parents=[name])
        for store in stores if topic == "lines" else ():
            topology.add_state_store(store, processors=[f"p-{name}"])
    return topology


class MixedGroup:
    """Members by name; `rebalance` runs one generation, `settle` as many as members ask for."""

    counts = COUNTS

    def __init__(self, *, cooperative=False, strategy=sticky, standbys=0):
        self.members = {}
        self.programs = {}
        self.knowledge = {}
        self.cooperative = cooperative
        self.strategy = strategy
        self.config = AssignmentConfig(num_standby_replicas=standbys)
        self.sums = {}
        self.generation = 0
        self.last = None
        self.sent = {}
        self.started = 0
        self.failures = {}
        self.levels = UNKNOWN_LEVELS
        self.known = {}
        self.taken = {}

    def start(self, name, *topologies, reached=None, instance_id=None):
        """Start a member with these versions of the topology."""
        self.started += 1
        carried = carried_topologies(topologies, "app")
        self.programs[name] = carried
        self.knowledge[name] = LeaderKnowledge()
        self.members[name] = StreamsMember(
            NATIVE,
            MemberIdentity(process_id=UUID(int=self.started), instance_id=instance_id),
            carried=carried,
            reached=reached,
        )

    def stop(self, name):
        """End a member; returns what its state directory keeps."""
        member = self.members.pop(name)
        self.taken.pop(name, None)
        return member.topology.reached

    def rebalance(self, leader, *, missing=()):
        """One generation; the answers of the missing members are lost."""
        self.generation += 1
        blobs = []
        for name, member in self.members.items():
            owned = sorted(p for ps in member.held.active.values() for p in ps)
            owned = tuple(owned) if self.cooperative else ()
            data = member.subscription(
                self.sums.get(name),
                owned_partitions=owned,
                owned_generation=self.taken.get(name, -1),
            )
            self.sent[name] = data[1]
            blobs.append(
                GroupMember(member_id=name, user_data=data[1], owned_partitions=owned or None)
            )
        program = self.programs[leader]
        settings = LeaderSettings(
            release=NATIVE,
            subtopologies=program.subtopologies,
            config=self.config,
            strategy=self.strategy,
            versions=program.versions,
        )
        known = replace(
            self.knowledge[leader],
            leader_id=leader,
            generation=self.generation,
            levels=self.levels,
            reached=self.known.get(leader, {}),
        )
        self.last = assign_group(settings, blobs, self.counts, knowledge=known)
        assert self.last.faults == ()
        self.knowledge[leader] = self.last.remembered()
        received = {
            name: member.receive(
                self.last.answers[name].partitions, self.last.answers[name].user_data, now_ms=1
            )
            for name, member in self.members.items()
            if name not in missing
        }
        self.taken |= dict.fromkeys(received, self.generation)
        self.failures = {name: r.failure for name, r in received.items() if r.failure}
        self.check()
        return received

    def settle(self, leader):
        """Rebalance until no member asks for another one; returns how many rebalances it took."""
        for count in range(1, 6):
            received = self.rebalance(leader)
            if not any(wants_now(answer) for answer in received.values()):
                return count
        raise AssertionError("the group does not settle")

    def check(self):
        """No partition runs twice, and every member runs subtopologies of its own program."""
        runs = [
            partition
            for member in self.members.values()
            for partitions in member.held.active.values()
            for partition in partitions
        ]
        assert len(runs) == len(set(runs)), runs
        for name, member in self.members.items():
            parts = self.programs[name].subtopologies
            for task, partitions in member.held.active.items():
                topics = set(parts[task.subtopology].source_topics)
                assert {p.topic for p in partitions} <= topics

    def owners(self, topic):
        """Partition of a topic -> (member, changelogs of the form that it runs)."""
        return {
            p.partition: (
                name,
                self.programs[name].subtopologies[task.subtopology].changelog_topics,
            )
            for name, member in self.members.items()
            for task, partitions in member.held.active.items()
            for p in partitions
            if p.topic == topic
        }

    def forms(self, topic):
        """Names of the stores in which the partitions of a topic run."""
        stores = {
            partition: tuple(c.removeprefix("app-").removesuffix("-changelog") for c in changelogs)
            for partition, (_, changelogs) in self.owners(topic).items()
        }
        return [stores.get(partition) for partition in range(self.counts[topic])]


def wants_now(received):
    return any(
        isinstance(c, RejoinNow) or (isinstance(c, ScheduleRebalance) and c.at_ms <= 1)
        for c in received.commands
    )
