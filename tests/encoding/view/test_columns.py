"""Views as values: checks, comparison, construction from task numbers, host maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import (
    EncodeError,
    HostInfo,
    TopicPartition,
    View,
    ViewReference,
    build_view,
    partitions_by_host,
    view_checksum,
    view_reference,
)
from encoding.view import is_viewable
from encoding.view.columns import STANDBY_RANKS_MAX, carry
from tests.encoding.view.views import views

A, B, C = (HostInfo(name, 8080) for name in "abc")


def view(**changes):
    fields = {
        "epoch": 3,
        "sizes": (2, 1),
        "hosts": (A, B),
        "active": np.array([0, 1, -1]),
        "standbys": np.array([[1, -1, 0]]),
    }
    return View(**fields | changes)


def test_a_view_counts_its_tasks_and_ranks():
    assert (view().tasks, view().ranks) == (3, 1)
    assert view().owners().tolist() == [[0, 1, -1], [1, -1, 0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": 4},
        {"sizes": (1, 2)},
        {"hosts": (A, C)},
        {"active": np.array([0, 1, 0])},
        {"standbys": np.array([[1, 0, 0]])},
        {"standbys": np.array([[1, -1, 0], [-1, -1, -1]])},
    ],
)
def test_any_difference_makes_views_and_checksums_differ(changes):
    assert view() == view()
    assert view_checksum(view()) == view_checksum(view())
    assert view(**changes) != view()
    assert view_checksum(view(**changes)) != view_checksum(view())


def test_a_view_is_no_other_kind_of_thing():
    assert view() != "view"
    assert hash(view()) == hash(view())


def test_the_name_of_a_view_is_epoch_and_checksum():
    assert view_reference(view()) == ViewReference(3, view_checksum(view()))


def test_the_checksum_of_a_known_view_never_changes():
    """Members compare checksums across versions of this code."""
    assert view_checksum(view()) == 1_711_295_890


def test_columns_cannot_be_written_to_from_anywhere():
    column = np.array([0, 1, -1], np.int32)
    held = view(active=column)
    column[0] = 1
    assert held.active.tolist() == [0, 1, -1]
    with pytest.raises(ValueError, match="read-only"):
        held.active[0] = 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"epoch": -1}, "epoch"),
        ({"epoch": 2**63}, "epoch"),
        ({"sizes": (4, -1)}, "sizes"),
        ({"sizes": (2**31, 0)}, "sizes"),
        ({"sizes": (2**31 - 1, 1)}, "sizes"),
        ({"sizes": (2,)}, "active"),
        ({"active": np.array([0, 1])}, "active"),
        ({"active": np.array([0, 1, 2])}, "active"),
        ({"active": np.array([0, 1, -2])}, "active"),
        ({"active": np.array([0, 1, 2**32])}, "active"),
        ({"active": np.array([0.0, 1.0, 1.0])}, "active"),
        ({"active": np.array([[0, 1, 1]])}, "active"),
        ({"standbys": np.array([0, 1, 1])}, "standbys"),
        ({"standbys": np.array([[0, 1]])}, "standbys"),
        ({"standbys": np.array([[0, 1, 5]])}, "standbys"),
        ({"standbys": np.full((3, 3), -1)}, "standbys"),
        ({"hosts": (B, A)}, "hosts"),
        ({"hosts": (A, A)}, "hosts"),
        ({"hosts": (A, HostInfo("b", 65_536))}, "hosts"),
        ({"hosts": (A, HostInfo("b", -1))}, "hosts"),
        ({"hosts": (A, HostInfo("b" * 256, 1))}, "hosts"),
        ({"hosts": (HostInfo("", 1), A)}, "hosts"),
    ],
)
def test_a_view_that_cannot_be_is_refused_and_the_field_named(changes, reason):
    with pytest.raises(EncodeError) as caught:
        view(**changes)
    assert caught.value.field == f"view.{reason}"


def test_hosts_are_viewable_up_to_the_length_that_dns_allows():
    assert is_viewable(HostInfo("h" * 255, 65_535))
    assert is_viewable(HostInfo("::1", 0))
    assert not is_viewable(HostInfo("h" * 256, 1))
    assert not is_viewable(HostInfo("ü" * 128, 1))
    assert not is_viewable(HostInfo("\ud800", 1))


def test_a_view_is_built_from_task_numbers_in_any_order():
    built = build_view(
        epoch=3,
        sizes=[2, 1],
        active={B: [1], A: [0]},
        standby={A: [2], B: [0]},
    )
    assert built == view()


@given(views(), st.randoms(use_true_random=False))
def test_building_forgets_nothing_but_ranks(drawn, random):
    active = {host: np.flatnonzero(drawn.active == n) for n, host in enumerate(drawn.hosts)}
    standby = {
        host: np.flatnonzero((drawn.standbys == n).any(axis=0))
        for n, host in enumerate(drawn.hosts)
    }
    shuffled = list(standby.items())
    random.shuffle(shuffled)
    built, other = (
        build_view(
            epoch=drawn.epoch,
            sizes=drawn.sizes,
            active={host: tasks.tolist() for host, tasks in active.items()},
            standby={host: tasks.tolist() for host, tasks in copies},
        )
        for copies in (standby.items(), shuffled)
    )
    assert built == other
    assert built.hosts == drawn.hosts
    assert built.active.tolist() == drawn.active.tolist()
    for task in range(drawn.tasks):
        assert set(built.standbys[:, task]) - {-1} == set(drawn.standbys[:, task]) - {-1}


def test_hosts_that_no_view_can_list_are_left_out():
    built = build_view(epoch=0, sizes=[2], active={A: [0], HostInfo("x" * 300, 1): [1]}, standby={})
    assert built.hosts == (A,)
    assert built.active.tolist() == [0, -1]


def test_a_task_that_two_hosts_run_is_refused():
    with pytest.raises(EncodeError, match="one active owner") as caught:
        build_view(epoch=0, sizes=[3], active={A: [0, 1, 2], B: [1]}, standby={})
    assert caught.value.value == 1


@pytest.mark.parametrize("task", [-1, 2])
def test_a_task_that_does_not_exist_is_refused(task):
    with pytest.raises(EncodeError, match="T is 2") as caught:
        build_view(epoch=0, sizes=[2], active={A: [task]}, standby={})
    assert caught.value.value == (task, task)


def test_copies_beyond_the_highest_rank_are_left_out():
    assert STANDBY_RANKS_MAX == 32, "readers refuse more: a larger one needs a new version"
    hosts = [HostInfo(f"h{n:02}", 1) for n in range(STANDBY_RANKS_MAX + 5)]
    built = build_view(epoch=0, sizes=[1], active={}, standby={host: [0] for host in hosts})
    assert built.standbys[:, 0].tolist() == list(range(STANDBY_RANKS_MAX))


def test_copies_that_stayed_keep_their_rank():
    before = build_view(epoch=0, sizes=[2], active={}, standby={B: [0, 1], C: [0, 1]})
    after = build_view(
        epoch=1, sizes=[2], active={}, standby={A: [0], C: [0, 1], B: [1]}, previous=before
    )
    # A took B's place of task 0: by order of hosts alone it would have moved C.
    assert after.standbys.tolist() == [[0, 1], [2, 2]]


def test_the_place_of_a_host_that_left_is_free_for_others():
    before = build_view(epoch=0, sizes=[2], active={}, standby={A: [0, 1], C: [0, 1]})
    after = build_view(epoch=1, sizes=[2], active={}, standby={B: [0], C: [0, 1]}, previous=before)
    assert after.hosts == (B, C)
    assert after.standbys.tolist() == [[0, -1], [1, 1]]


def test_ranks_follow_tasks_that_moved_when_a_subtopology_grew():
    before = build_view(epoch=0, sizes=[1, 1], active={}, standby={B: [0, 1], C: [0, 1]})
    after = build_view(
        epoch=1, sizes=[2, 1], active={}, standby={A: [2], C: [0, 2], B: [0]}, previous=before
    )
    assert after.standbys.tolist() == [[1, -1, 0], [2, -1, 2]]


def test_every_subtopology_keeps_its_owners_when_others_grow_and_shrink():
    owners = np.arange(6, dtype=np.int32).reshape(1, 6)
    assert carry(owners, (1, 2, 3), (2, 1, 4), 7).tolist() == [[0, -1, 1, 3, 4, 5, -1]]
    assert carry(owners, (1, 2, 3), (1, 2), 3).tolist() == [[0, 1, 2]]
    assert carry(owners, (1, 2, 3), (1, 2, 3, 1), 7).tolist() == [[0, 1, 2, 3, 4, 5, -1]]


@given(views(), st.data())
def test_keeping_ranks_loses_no_copy(drawn, data):
    if not drawn.hosts:
        return
    tasks = st.lists(st.integers(0, drawn.tasks - 1), unique=True) if drawn.tasks else st.just([])
    standby = {host: data.draw(tasks) for host in drawn.hosts}
    plain = build_view(epoch=1, sizes=drawn.sizes, active={}, standby=standby)
    kept = build_view(epoch=1, sizes=drawn.sizes, active={}, standby=standby, previous=drawn)
    for task in range(drawn.tasks):
        assert sorted(kept.standbys[:, task]) == sorted(plain.standbys[:, task])
        for rank in range(min(kept.ranks, drawn.ranks)):
            owner = drawn.standbys[rank, task]
            if owner >= 0 and kept.ranks > 1 and owner in plain.standbys[:, task]:
                assert owner in kept.standbys[: rank + 1, task]


def test_host_maps_follow_from_the_topology():
    partitions = [[TopicPartition("t", 0)], [TopicPartition("t", 1)], [("u", 0), ("t", 2)]]
    active, standby = partitions_by_host(view(), partitions)
    assert active == {A: (("t", 0),), B: (("t", 1),)}
    assert standby == {A: (("t", 2), ("u", 0)), B: (("t", 0),)}


def test_a_host_without_tasks_is_in_the_host_maps():
    active, standby = partitions_by_host(view(hosts=(A, B, C)), [[], [], []])
    assert list(active) == list(standby) == [A, B, C]


def test_a_view_of_another_topology_is_not_used():
    with pytest.raises(EncodeError, match="topology has 2 tasks"):
        partitions_by_host(view(), [[], []])
