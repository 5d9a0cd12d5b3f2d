"""Place tasks without any client library: a topology, three clients, one of them new."""

from assignor import AssignmentConfig, ClientInput, Topology, group_state, plan_tasks, sticky

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
state = group_state(
    tasks=tasks,
    stateful_tasks=plan.stateful_tasks,
    clients=[
        ClientInput(process_id="a", active_tasks=frozenset(tasks[:3])),
        ClientInput(process_id="b", active_tasks=frozenset(tasks[3:])),
        ClientInput(process_id="new"),
    ],
    config=AssignmentConfig(num_standby_replicas=1),
)
assignment = sticky(state)
for index, task in enumerate(state.tasks):
    client = state.clients[assignment.active[index]]
    moved = " (moved)" if assignment.active[index] != state.owner[index] else ""
    copies = [state.clients[c] for t, c in assignment.standbys if t == index]
    print(f"task {task}: active on {client}{moved}, standby on {', '.join(copies)}")
