"""KIP-584 on a real broker: a level is finalized, and the group switches to it."""

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from probing.features import ASSIGNMENT_PROTOCOL, UpdateKind
from system_tests.real import RealBroker, broker_release
from system_tests.support.level_members import LevelMember, finalize, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.fixture
def broker():
    """A separate broker, since levels are those of the whole cluster."""
    broker = RealBroker(broker_release("kafka:4"))
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.kip("584-10", "real")
def test_a_level_finalized_on_a_real_4_x_broker_switches_every_member_in_one_rebalance(broker):
    servers = broker.bootstrap_servers.split(",")
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(name="words", num_partitions=4, replication_factor=1)])
    admin.close()
    finalize(servers, 1, UpdateKind.SAFE_DOWNGRADE)
    members = [LevelMember(servers, 0) for _ in range(3)]

    def states():
        return [
            (member.epoch, member.generation, member.tasks, member.observations[-3:], member.error)
            for member in members
        ]

    def switched(level):
        """Whether all took the assignment of one generation, and use the level."""
        generations = {member.generation for member in members}
        levels = {member.assignor.levels.level_of(ASSIGNMENT_PROTOCOL) for member in members}
        tasks = sorted(task for member in members for task in member.tasks)
        same = len(generations) == len({member.epoch for member in members}) == 1
        settled = same and -1 not in generations
        return settled and levels == {level} and tasks == ["0_0", "0_1", "0_2", "0_3"]

    try:
        until(lambda: switched(11), states)
        before = members[0].generation
        finalize(servers, 2)
        until(lambda: switched(101), states)
        # The next poll of the levels would request a second rebalance at the latest.
        enough = [(member, member.polls + 2) for member in members]
        until(lambda: all(member.polls >= count for member, count in enough), states)
        until(lambda: switched(101), states)
        in_one_rebalance = [("wrote", 11), ("took", before + 1), ("writes next", 101)]
        assert [member.since(before) for member in members] == [in_one_rebalance] * 3
        members.pop().close()
        until(lambda: switched(101) and {member.written[-1] for member in members} == {101}, states)
        finalize(servers, 1, UpdateKind.SAFE_DOWNGRADE)
        until(lambda: switched(11), states)
    finally:
        for member in members:
            member.close()
