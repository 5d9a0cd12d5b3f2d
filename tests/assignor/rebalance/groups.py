"""A group in memory: members and leader exchange only bytes."""

from dataclasses import dataclass, field
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
from probing import RejoinNow, find_release
from probing.features import UNKNOWN_LEVELS

TOPOLOGY = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
)


def process_id(number):
    return UUID(int=number + 1)


def start(
    release="native",
    *,
    number=0,
    upgrade_from=None,
    endpoint=None,
    start_version=None,
    instance_id=None,
    levels=UNKNOWN_LEVELS,
    topology=TOPOLOGY,
):
    identity = MemberIdentity(
        process_id=process_id(number), user_endpoint=endpoint, instance_id=instance_id
    )
    return StreamsMember(
        find_release(release),
        identity,
        subtopologies=topology.subtopologies("app"),
        upgrade_from=upgrade_from,
        start_version=start_version,
        levels=levels,
    )


@dataclass
class Group:
    """Members by name; `round` runs one rebalance under a leader of a given release."""

    members: dict = field(default_factory=dict)
    partitions: int = 6
    config: AssignmentConfig = field(default_factory=AssignmentConfig)
    strategy: object = sticky
    group_record_limit: int = 1_048_588
    last: object = None

    def join(self, name, release="native", **options):
        self.members[name] = start(release, number=len(self.members), **options)
        self.members[name].release_name = release

    def settings(self, release):
        return LeaderSettings(
            release=find_release(release),
            subtopologies=TOPOLOGY.subtopologies("app"),
            config=self.config,
            strategy=self.strategy,
            group_record_limit=self.group_record_limit,
        )

    def round(self, leader, *, extra=(), knowledge=None):
        """Run one generation; return name -> Received."""
        blobs = [
            GroupMember(member_id=name, user_data=member.subscription()[1])
            for name, member in self.members.items()
        ]
        settings = self.settings(self.members[leader].release_name)
        self.last = assign_group(
            settings,
            [*blobs, *extra],
            {"lines": self.partitions},
            held_view=self.members[leader].view,
            knowledge=knowledge or self.knowledge(leader),
        )
        assert self.last.faults == ()
        return {
            name: member.receive(
                self.last.answers[name].partitions, self.last.answers[name].user_data, now_ms=0
            )
            for name, member in self.members.items()
        }

    def knowledge(self, leader):
        return LeaderKnowledge(levels=self.members[leader].state.known_levels)

    def settle(self, leader, *, limit=10):
        """Run rounds until no member rejoins; return their number."""
        for rounds in range(1, limit + 1):
            received = self.round(leader).values()
            if not any(isinstance(c, RejoinNow) for answer in received for c in answer.commands):
                return rounds
        raise AssertionError(f"not settled after {limit} rounds")

    def used_versions(self):
        return {name: member.state.used_version for name, member in self.members.items()}

    def owners(self):
        return {task: name for name, member in self.members.items() for task in member.held.active}
