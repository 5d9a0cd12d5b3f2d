"""Leaders of Kafka releases, for groups of simulations and tests.

They have no parts, remember no claims and check nothing: up to 2.3.0 they assigned tasks twice, and
an answer that ends a member is what the release gave.
"""

from assignor.rebalance.leader.assign import Replies, reply
from assignor.rebalance.leader.generation import Generation, Group, decide_versions
from assignor.rebalance.leader.members import endpoints_of
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.placing import place_tasks
from encoding import TaskId
from probing import Content, LeaderModel


def lead_as_kafka(group: Group) -> Replies:
    """Answer a group as a leader of the release does, right or wrong.

    Raises:
        LeaderRefused: such a leader fails on the group's versions.
        TaskAssignmentError: the strategy failed, and tasks cannot stay where they are either.
    """
    return reply(decide_versions(group, {}), _place)


def _place(generation: Generation) -> Placement:
    """Place the tasks; up to 2.5 they stay where they are while a future member probes."""
    quarantined = generation.quarantined_ids
    keeps = any(
        answer.content is Content.PREVIOUS and answer.member_id not in quarantined
        for answer in generation.decision.answers
    )
    return keep_previous(generation) if keeps else place_tasks(generation)


def keep_previous(generation: Generation) -> Placement:
    """Return the tasks of members that keep theirs, and the rest for future ones, or none for them.

    Before 2.2.2 and 2.3.1 each thread of a client was given all tasks that the client ran
    (`ClientState.prevActiveTasks`; later `prevActiveTasksForConsumer`, KAFKA-8649).
    """
    plan = generation.plan
    is_of_client = generation.group.settings.release.leader_model is LeaderModel.EMPTY_AND_OWN
    content = {answer.member_id: answer.content for answer in generation.decision.answers}
    by_client: dict[str, set[TaskId]] = {}
    for member in generation.members:
        by_client.setdefault(member.client, set()).update(member.ran)
    takers = sorted(member for member, kind in content.items() if kind is Content.NORMAL)
    active: dict[str, tuple[TaskId, ...]] = {}
    given: set[TaskId] = set()
    for member in generation.members:
        if content[member.id] is Content.PREVIOUS:
            ran = by_client[member.client] if is_of_client else member.ran
            own_tasks = ran & plan.partitions_by_task.keys() - (given if takers else set())
            active[member.id] = tuple(sorted(own_tasks))
            given |= own_tasks
    unowned = sorted(plan.partitions_by_task.keys() - given)
    for place, taker in enumerate(takers):
        active[taker] = tuple(unowned[place :: len(takers)])
    return Placement(active_by_member=active, endpoint_by_member=endpoints_of(generation.members))
