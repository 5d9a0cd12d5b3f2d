"""Tasks to threads: level, sticky, complete."""

from hypothesis import given
from hypothesis import strategies as st

from assignor.rebalance.threads import assign_actives, assign_threads
from encoding import TaskId

TASKS = [TaskId(s, p) for s in range(3) for p in range(6)]


@given(
    tasks=st.sets(st.sampled_from(TASKS)),
    threads=st.integers(1, 5),
    owners=st.lists(st.integers(0, 6), min_size=len(TASKS), max_size=len(TASKS)),
    load=st.lists(st.integers(0, 4), min_size=5, max_size=5),
)
def test_threads_end_level_and_every_task_has_one_thread(tasks, threads, owners, load):
    names = [f"t{i}" for i in range(threads)]
    owner_by_task = {task: f"t{owners[i]}" for i, task in enumerate(TASKS)}
    before = dict(zip(names, load, strict=False))
    result = assign_threads(
        tasks, threads=names, owner_by_task=owner_by_task, load_by_thread=before
    )
    assert sorted(t for own in result.values() for t in own) == sorted(tasks)
    after = {name: before[name] + len(result[name]) for name in names}
    grown = [after[name] for name in names if result[name]]
    # A thread that got a task has at most one more than the lowest.
    assert not grown or max(grown) <= min(after.values()) + 1


def test_a_second_call_moves_nothing():
    names = ["a", "b", "c"]
    first = assign_threads(TASKS, threads=names, owner_by_task={})
    owners = {task: name for name, own in first.items() for task in own}
    assert assign_threads(TASKS, threads=names, owner_by_task=owners) == first


def test_the_spare_place_goes_to_the_thread_that_can_keep_one_more_by_it():
    tasks = [TaskId(0, p) for p in range(5)]
    owners = dict.fromkeys(tasks[2:], "b")
    result = assign_threads(tasks, threads=["a", "b"], owner_by_task=owners)
    assert result == {"a": tuple(tasks[:2]), "b": tuple(tasks[2:])}


def test_the_tasks_of_a_subtopology_are_spread():
    result = assign_threads(TASKS, threads=["a", "b", "c"], owner_by_task={})
    for own in result.values():
        assert [sum(t.subtopology == s for t in own) for s in range(3)] == [2, 2, 2]


def test_threads_keep_as_many_tasks_as_level_counts_allow():
    names = [f"t{i}" for i in range(4)]
    owners = {task: names[min(i * i // 40, 3)] for i, task in enumerate(TASKS)}
    result = assign_threads(TASKS, threads=names, owner_by_task=owners)
    held = [sum(owner == name for owner in owners.values()) for name in names]
    floor, spare = divmod(len(TASKS), len(names))
    kept = sum(owners[task] == name for name, own in result.items() for task in own)
    assert kept == sum(min(h, floor) for h in held) + min(spare, sum(h > floor for h in held))


@given(
    stateful=st.sets(st.sampled_from(TASKS)),
    threads=st.integers(1, 5),
    owners=st.lists(st.integers(0, 6), min_size=len(TASKS), max_size=len(TASKS)),
)
def test_state_is_level_on_the_threads_and_so_is_all_that_they_run(stateful, threads, owners):
    owner_by_task = {task: f"t{owners[i]}" for i, task in enumerate(TASKS)}
    dealt = assign_actives(
        stateful,
        set(TASKS) - stateful,
        threads=[f"t{i}" for i in range(threads)],
        owner_by_task=owner_by_task,
    )
    assert sorted(task for own in dealt.values() for task in own) == sorted(TASKS)
    assert all(list(own) == sorted(own) for own in dealt.values())
    for counts in (
        [len(own) for own in dealt.values()],
        [len(stateful.intersection(own)) for own in dealt.values()],
    ):
        assert max(counts) <= min(counts) + 1
