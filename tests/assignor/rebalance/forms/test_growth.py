"""The leader's work grows like the descriptions of hostile members, not like their product.

Work is counted: calls of Python and C functions during one `assign_group`. Nothing is timed.
"""

from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    StreamsMember,
    assign_group,
    sticky,
)
from assignor.topology import CarriedTopologies, Subtopology
from assignor.topology import content_fingerprint as form_of
from assignor.topology.changes import carried_topologies
from probing.topologies import Reached
from tests.assignor.rebalance.forms.mixed_group import NATIVE, counting
from tests.costs import calls_of

MEMBERS, PARTITIONS = 4, 4
GROWTH = 3.9
# Source topics of each form: all forms in one family, a chain of overlaps through one family, a
# family for each topic, and no overlap at all.
SHAPES = {
    "one family": ("lines",),
    "chain": ("t{number:03}", "t{next:03}"),
    "families": ("t{number:03}",),
    "apart": ("m{member}-{number:03}",),
}


def program(shape, member, forms):
    """What a hostile member describes: forms that contradict each other and those of others."""
    parts = tuple(
        Subtopology(
            id=number,
            nodes=(),
            source_topics=tuple(
                topic.format(member=member, number=number, next=number + 1)
                for topic in SHAPES[shape]
            ),
            changelog_topics=(f"app-{member}-{number}-changelog",),
        )
        for number in range(forms)
    )
    versions = tuple((2 + number % 3,) for number in range(forms))
    return CarriedTopologies(subtopologies=parts, versions=versions)


def calls(shape, forms):
    """Calls of one rebalance in which the members report what the rebalance before gave them."""
    own = carried_topologies([counting(2)], "app")
    programs = {"leader": own}
    programs |= {f"m{member}": program(shape, member, forms) for member in range(MEMBERS)}
    members = {
        name: StreamsMember(
            NATIVE,
            MemberIdentity(process_id=UUID(int=number)),
            carried=carried,
            reached={
                form_of(part): Reached(part.id % 50, 2 + part.id % 3)
                for part in carried.subtopologies
            },
        )
        for number, (name, carried) in enumerate(programs.items(), 1)
    }
    settings = LeaderSettings(
        release=NATIVE,
        subtopologies=own.subtopologies,
        config=AssignmentConfig(),
        strategy=sticky,
        versions=own.versions,
    )
    topics = {
        t for carried in programs.values() for p in carried.subtopologies for t in p.source_topics
    }
    knowledge = LeaderKnowledge()
    for generation in (1, 2):
        blobs = [
            GroupMember(member_id=name, user_data=member.subscription()[1])
            for name, member in members.items()
        ]
        known = replace(knowledge, leader_id="leader", generation=generation)
        group = (settings, blobs, dict.fromkeys(topics, PARTITIONS))
        count = calls_of(partial(assign_group, *group, knowledge=known))
        answer = assign_group(*group, knowledge=known)
        assert (answer.faults, dict(answer.quarantined)) == ((), {})
        knowledge = answer.remembered()
        for name, member in members.items():
            given = answer.answers[name]
            member.receive(given.partitions, given.user_data, now_ms=1)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_contradictory_forms_cost_less_than_four_times_the_calls(shape):
    assert calls(shape, 160) / calls(shape, 40) < GROWTH
