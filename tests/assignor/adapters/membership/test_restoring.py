"""Active tasks that are still restored are reported with their offset sums, as in Kafka Streams."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor import GroupMember, RunningTasks, TasksListener, Topology, high_availability
from assignor.adapters.membership import member_options, new_driver
from encoding import RUNNING, TaskId, decode_subscription
from tests.assignor.adapters.membership.clients import FakeClient
from tests.assignor.rebalance.groups import TOPOLOGY

END = 1_000_000
TASKS = [TaskId(0, p) for p in range(2)]
STATELESS = Topology().add_source("lines", topics=["lines"])


class App(RunningTasks):
    """Has state of some tasks."""

    def __init__(self, **offsets):
        super().__init__()
        self.offsets = offsets

    def task_offsets(self):
        return {TaskId(0, int(name[1:])): offset for name, offset in self.offsets.items()}


def member(listener, number=1, *, topology=TOPOLOGY, **options):
    keywords = {"process_id": UUID(int=number), "listener": listener} | options
    membership = new_driver(member_options(topology, "app", keywords))
    membership.connect(FakeClient())
    # As the thread that reads the cluster would: the end of each changelog.
    cluster = membership.cluster
    knowledge = cluster.knowledge
    ends = dict.fromkeys(TASKS, END) if topology is TOPOLOGY else {}
    cluster.knowledge = lambda counts: SimpleNamespace(
        partition_counts=knowledge(counts).partition_counts, waits={}, end_offset_sums=ends
    )
    return membership


def rebalance(*members, generation=1):
    """One generation, led by the first member; what each has written."""
    wires = [each.join() for each in members]
    group = [GroupMember(member_id=f"m{n}", user_data=wire) for n, wire in enumerate(wires)]
    lines = SimpleNamespace(partitions_for_topic=lambda _: {0, 1})
    answers = members[0].decide(lines, group)
    for n, each in enumerate(members):
        answer = answers[f"m{n}"]
        each.take([tuple(p) for p in answer.partitions], answer.user_data, generation)
    return [dict(decode_subscription(wire).task_offset_sums) for wire in wires]


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_a_fresh_task_counts_by_its_sum_and_a_restored_one_as_running(protocol):
    app = App(t0=7, t1=8)
    each = member(app, rebalance_protocol=protocol)
    rebalance(each)
    assert sorted(app.active) == TASKS
    with app.working({TASKS[0]}):
        pass
    [sums] = rebalance(each, generation=2)
    assert sums == {TASKS[0]: RUNNING, TASKS[1]: 8}
    del app.offsets["t1"]
    [sums] = rebalance(each, generation=3)
    assert sums == dict.fromkeys(TASKS, RUNNING), "nobody knows how far it is"


def test_a_listener_that_names_none_runs_all():
    each = member(TasksListener())
    rebalance(each)
    assert rebalance(each) == [dict.fromkeys(TASKS, RUNNING)]


def test_a_task_without_state_runs_at_once():
    app = App(t0=7, t1=8)
    each = member(app, topology=STATELESS)
    rebalance(each)
    with app.working({TASKS[0]}):
        pass
    assert app.restoring_tasks() == {TASKS[1]}
    assert rebalance(each) == [dict.fromkeys(TASKS, RUNNING)]


def test_a_listener_that_fails_costs_nothing_but_its_word():
    class Broken(App):
        def restoring_tasks(self):
            raise ValueError("no idea")

    each = member(Broken(t0=7))
    rebalance(each)
    assert rebalance(each) == [dict.fromkeys(TASKS, RUNNING)]
    assert any("no idea" in why for why in each.reporter.failures)


def test_a_task_that_is_restored_slowly_moves_to_a_member_that_has_its_state():
    slow = App(t0=END, t1=10)
    first = member(slow, strategy=high_availability)
    rebalance(first)
    with slow.working({TASKS[0]}):
        pass
    second = member(App(t1=END), 2, strategy=high_availability)
    rebalance(first, second, generation=2)
    assert sorted(second.member.held.active) == [TASKS[1]]


def test_the_same_task_stays_where_it_runs_and_the_state_becomes_a_standby():
    app = App(t0=END, t1=10)
    first = member(app, strategy=high_availability)
    rebalance(first)
    with app.working(set(TASKS)):
        pass
    second = member(App(t0=10, t1=10), 2, strategy=high_availability)
    rebalance(first, second, generation=2)
    assert sorted(first.member.held.active) == TASKS
