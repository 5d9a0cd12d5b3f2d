"""Tasks in the order in which a client gives them up."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assignor.placement.draft_actives import GivingOrder

PARTS = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
TASKS = st.sets(st.sampled_from(range(len(PARTS))))


def from_scratch(tasks):
    """Sort tasks by the number of earlier tasks of their subtopology, most first; then by id."""
    before, ranked = Counter(), []
    for task in sorted(tasks):
        ranked.append((-before[PARTS[task]], task))
        before[PARTS[task]] += 1
    return [task for _, task in sorted(ranked)]


@given(TASKS, TASKS, TASKS)
def test_tasks_come_and_go_and_the_largest_subtopology_shrinks_first(held, gone, come):
    order = GivingOrder(held, PARTS)
    assert list(order) == from_scratch(held)
    for task in sorted(gone):  # some of them are not there
        order.discard(task)
    kept = held - gone
    for task in sorted(come - kept):
        order.add(task)
    assert list(order) == from_scratch(kept | come)


def test_the_largest_subtopology_comes_first():
    assert list(GivingOrder(range(10), PARTS)) == [3, 2, 6, 1, 5, 8, 0, 4, 7, 9]
