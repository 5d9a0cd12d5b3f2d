from assignor.placement.racks.traffic import client_racks, traffic_of
from assignor.placement.state import ClientInput, group_state
from encoding import TaskId

A, B, C = frozenset("a"), frozenset("b"), frozenset("c")


def group(racks, replicas):
    tasks = [TaskId(0, number) for number in range(len(replicas))]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[ClientInput(process_id=f"c{n}", rack=rack) for n, rack in enumerate(racks)],
        partition_racks=dict(zip(tasks, replicas, strict=True)),
    )


def test_clients_are_numbered_by_rack_name_and_the_nameless_come_last():
    names, rack_of = client_racks(group(["b", None, "a", "b"], []))
    assert names == ("a", "b", None)
    assert rack_of.tolist() == [1, 2, 0, 1]


def test_a_partition_costs_one_in_every_rack_without_a_replica():
    state = group(["a", "b", None], [(A, B), (A | B,), (A,)])
    traffic = traffic_of(state, state.partition_racks, range(3))
    assert traffic.weight[traffic.class_of].tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_tasks_that_cost_the_same_everywhere_share_a_class():
    state = group(["a", "b"], [(A,), (A | C,), (A, B), (B, A)])
    class_of = traffic_of(state, state.partition_racks, range(4)).class_of.tolist()
    assert class_of[0] == class_of[1], "a rack without clients makes no difference"
    assert class_of[2] == class_of[3]
    assert class_of[0] != class_of[2]


def test_unknown_replicas_cost_nothing_and_are_counted():
    state = group(["a", "b"], [(None, A), (None,), (A,)])
    traffic = traffic_of(state, state.partition_racks, range(3))
    assert traffic.weight[traffic.class_of].tolist() == [[0, 1], [0, 0], [0, 1]]
    assert traffic.unknown == 2
    assert traffic_of(state, None, range(3)).unknown == 3
