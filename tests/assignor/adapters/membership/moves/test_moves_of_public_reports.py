"""Needless moves that users of other libraries reported, with this leader: each named by its id."""

from collections import defaultdict

import pytest

from assignor import RunningTasks
from tests.assignor.adapters.membership.moves.groups import Group

END, GROWTH, LAG = 1_000, 6, 12
PROTOCOLS = pytest.mark.parametrize("protocol", ["eager", "cooperative"])


class OnDisk(RunningTasks):
    """Has state on a disk that outlives it."""

    def __init__(self, disk):
        super().__init__()
        self.disk = disk

    def task_offsets(self):
        return dict(self.disk)


class Machines(Group):
    """A group whose members have state on their disks, above the acceptable lag."""

    def __init__(self, **options):
        super().__init__(end=END, acceptable_recovery_lag=LAG, **options)
        self.disks = defaultdict(dict)

    def start(self, name):
        """Start a member; return the tasks that move."""
        moved = self.join(name, OnDisk(self.disks[name]))
        self.restore()
        return moved

    def stop(self, name):
        """Stop a member; return the tasks of other members that move."""
        moved = self.leave(name)
        self.restore()
        return moved

    def started(self, *names):
        """Start members, and rebalance until they are even; return task -> member."""
        for name in names:
            self.start(name)
        while self.loads() != [len(self.tasks) // len(names)] * len(names):
            self.settle()
            self.restore()
        self.restore()
        self.restore()
        return self.owners()

    def restore(self):
        """Have every member restore its tasks, whose changelogs grow: other state is behind."""
        self.end += GROWTH
        for name, member in self.members.items():
            listener = member.reporter.listener
            self.disks[name].update(dict.fromkeys(listener.active | listener.standby, self.end))
            with listener.working(restored=listener.active):
                pass


@PROTOCOLS
def test_kafka_3890_a_rolling_restart_brings_each_task_back(protocol):
    group = Machines(rebalance_protocol=protocol)
    names = ("one", "two", "three", "four")
    before = group.started(*names)
    for name in names:
        own = {task for task, owner in before.items() if owner == name}
        assert group.stop(name) == set(), "its own tasks alone go elsewhere"
        assert group.start(name) == own, "and they come back"
        assert group.owners() == before


@PROTOCOLS
def test_kafka_20719_a_group_that_starts_anew_has_its_tasks_where_their_state_is(protocol):
    group = Machines(rebalance_protocol=protocol)
    names = ("one", "two", "three")
    before = group.started(*names)
    for name in names:
        group.members.pop(name).close()
        group.disks[name] = {t: group.end for t, owner in before.items() if owner == name}
    for name in reversed(names):  # another leader, and another order
        group.join(name, OnDisk(group.disks[name]))
    group.settle()
    assert group.owners() == before


@PROTOCOLS
def test_kafka_21001_a_warm_up_stays_where_its_restore_has_begun(protocol):
    group = Machines(rebalance_protocol=protocol)
    group.started("one", "two")
    group.join("three", OnDisk(group.disks["three"]))
    warming = group.members["three"].member.held.warmup
    assert len(warming) == 2
    group.disks["three"].update(dict.fromkeys(warming, 10))
    group.join("four", OnDisk(group.disks["four"]))
    assert group.members["three"].member.held.warmup == warming
    group.disks["three"].update(dict.fromkeys(warming, group.end))
    assert group.settle() == warming
    assert warming == group.members["three"].member.held.active.keys()


@PROTOCOLS
def test_kafka_8463_nothing_else_moves_when_the_leader_leaves(protocol):
    group = Group(rebalance_protocol=protocol)
    for name in ("one", "two", "three", "four"):
        group.join(name, RunningTasks())
    assert group.leave("one") == set(), "its own tasks alone"
    assert group.loads() == [4, 4, 4]


def test_faust_93_a_member_that_comes_back_gets_its_share():
    group = Group(tasks=25)
    names = [f"member {number}" for number in range(10)]
    for name in names:
        group.join(name, RunningTasks())
    assert group.loads() == [2] * 5 + [3] * 5
    group.leave(names[7])
    group.join(names[7], RunningTasks())
    assert group.loads() == [2] * 5 + [3] * 5
