"""A leader takes the plan of another job, whatever its members report; else it says why not."""

import pytest

from assignor import OffloadedPlans, PlanStore, RunningTasks, TasksListener, high_availability
from assignor.stores import plan_for
from tests.assignor.adapters.membership.moves.groups import Group

NAMES = ("one", "two")


class Restoring(TasksListener):
    """Still restores everything that it runs, and says how far it is."""

    def __init__(self):
        self.active = {}

    def on_tasks_assigned(self, active, standby):
        self.active = active

    def restoring_tasks(self):
        return self.active.keys()

    def task_offsets(self):
        return dict.fromkeys(self.active, 10)


class PlannedGroup(Group):
    """Two members with the plans of a store."""

    def __init__(self, store, listener, **options):
        super().__init__(**options)
        self.store = store
        for name in NAMES:
            plans = OffloadedPlans(store, group="app", tasks_at_least=1)
            self.join(name, listener(), strategy=plans)

    def plan(self):
        """Plan for the leader's snapshot as the Spark job does; return task -> member."""
        snapshot = self.store.read_snapshot("app")
        plan = plan_for(snapshot, high_availability(snapshot.state))
        self.store.write_plan("app", plan)
        names = {str(each.member.identity.process_id): name for name, each in self.members.items()}
        active = plan.assignment.active.tolist()
        return {
            task: names[snapshot.state.clients[client]]
            for task, client in zip(snapshot.state.tasks, active, strict=True)
        }


@pytest.fixture
def store(tmp_path, caplog):
    caplog.set_level("INFO", logger="assignor")
    return PlanStore(tmp_path)


PROTOCOLS = pytest.mark.parametrize("protocol", ["eager", "cooperative"])


@PROTOCOLS
@pytest.mark.parametrize("listener", [RunningTasks, TasksListener, Restoring, lambda: None])
def test_a_plan_is_taken_at_the_next_rebalance(store, listener, protocol):
    group = PlannedGroup(store, listener, rebalance_protocol=protocol)
    assert group.loads() == [0, 12]
    planned = group.plan()
    group.settle()
    assert group.owners() == planned
    assert group.loads() == [6, 6]


@PROTOCOLS
def test_a_plan_from_before_the_state_was_written_moves_no_task(store, protocol, caplog):
    group = PlannedGroup(store, RunningTasks, rebalance_protocol=protocol)
    group.plan()
    group.end = 50_000
    group.settle()
    assert group.loads() == [0, 12]
    assert "stale: 6 tasks would start on copies that are not caught up" in caplog.text
    group.plan()  # of the state by now: copies first
    group.settle()
    assert group.loads() == [0, 12]
    assert any(each.member.held.standby for each in group.members.values())


def test_the_log_says_why_a_plan_is_not_taken_and_what_to_do(store, caplog):
    group = PlannedGroup(store, RunningTasks)
    group.plan()
    plans = OffloadedPlans(store, group="app", tasks_at_least=1)
    caplog.clear()
    group.join("three", RunningTasks(), strategy=plans)
    [line] = [m for m in caplog.messages if "the plan is rejected (members changed" in m]
    assert "run the Spark job again; without a state_dir" in line
