"""Place tasks without any client library: a topology, three clients, one of them new."""

from assignor import (
    LAG_RUNNING,
    AssignmentConfig,
    ClientInput,
    TaskId,
    Topology,
    group_state,
    high_availability,
)
from assignor.topology import plan_tasks

topology = (
    Topology()
    .add_source("orders", topics=["orders"])
    .add_source("customers", topics=["customers"])
    .add_processor("join", parents=["orders", "customers"])
    .add_state_store("by-customer", processors=["join"])
    .copartition("orders", "customers")
)
plan = plan_tasks(topology.subtopologies("shop"), {"orders": 6, "customers": 6})
tasks = list(plan.partitions_by_task)


def running(process_id: str, own: list[TaskId]) -> ClientInput:
    """A client that runs these tasks and has their state."""
    return ClientInput(
        process_id=process_id, active_tasks=frozenset(own), lags=dict.fromkeys(own, LAG_RUNNING)
    )


state = group_state(
    tasks=tasks,
    stateful_tasks=plan.stateful_tasks,
    clients=[running("a", tasks[:3]), running("b", tasks[3:]), ClientInput(process_id="new")],
    config=AssignmentConfig(num_standby_replicas=1),
    end_offset_sums=dict.fromkeys(tasks, 250_000),
)
assignment = high_availability(state)
for index, task in enumerate(state.tasks):
    client = state.clients[assignment.active[index]]
    copies = [state.clients[c] for t, c in assignment.standbys if t == index]
    print(f"task {task}: active on {client}, copies on {', '.join(copies)}")
