"""The client's story of KIP-584 on a real broker: a level is finalized, and the group switches."""

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from probing.features import ASSIGNMENT_PROTOCOL, UpdateKind
from system_tests.real import RealBroker, broker_release
from system_tests.support.level_members import LevelMember, finalize, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def broker():
    """A broker of its own, since levels are the whole cluster's."""
    one = RealBroker(broker_release("kafka:4"))
    one.start()
    yield one
    one.stop()


@pytest.mark.kip("584-10", "real")
def test_a_level_finalized_on_a_real_4_x_broker_switches_every_member_in_one_rebalance(broker):
    servers = broker.bootstrap_servers.split(",")
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(name="words", num_partitions=4, replication_factor=1)])
    admin.close()
    finalize(servers, 1, UpdateKind.SAFE_DOWNGRADE)
    members = [LevelMember(servers, 0) for _ in range(3)]

    def said():
        return [(one.epoch, one.generation, one.tasks, one.seen[-3:], one.error) for one in members]

    def switched(level):
        """Whether all took the answer of one generation, wait for no other, and go by the level."""
        generations = {one.generation for one in members}
        levels = {one.assignor.levels.level_of(ASSIGNMENT_PROTOCOL) for one in members}
        tasks = sorted(task for one in members for task in one.tasks)
        same = len(generations) == len({one.epoch for one in members}) == 1
        settled = same and -1 not in generations
        return settled and levels == {level} and tasks == ["0_0", "0_1", "0_2", "0_3"]

    try:
        until(lambda: switched(11), said)
        before = members[0].generation
        finalize(servers, 2)
        until(lambda: switched(101), said)
        # A second rebalance would be asked for at the latest by what a next look finds.
        enough = [(one, one.looks + 2) for one in members]
        until(lambda: all(one.looks >= count for one, count in enough), said)
        until(lambda: switched(101), said)
        in_one_rebalance = [("wrote", 11), ("took", before + 1), ("writes next", 101)]
        assert [one.since(before) for one in members] == [in_one_rebalance] * 3
        members.pop().close()
        until(lambda: switched(101) and {one.written[-1] for one in members} == {101}, said)
        finalize(servers, 1, UpdateKind.SAFE_DOWNGRADE)
        until(lambda: switched(11), said)
    finally:
        for one in members:
            one.close()
