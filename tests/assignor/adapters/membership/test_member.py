"""Behaviour of all adapters: cooperative and lost members, hooks; with kafka-python's values."""

import logging

import pytest
from kafka.coordinator.assignors.abstract import RebalanceProtocol

from assignor import RebalanceHook
from assignor.observe import LoggingHook, Outcome
from encoding import TaskId, decode_subscription
from probing import ReleaseError
from tests.assignor.adapters.membership.cooperative import Member, rebalance
from tests.log_records import records_of

TASKS = [TaskId(0, number) for number in range(4)]


def test_a_cooperative_member_keeps_its_tasks_and_names_them_in_both_protocols():
    first = Member(1)
    assert first.assignor.supported_protocols() == [RebalanceProtocol.COOPERATIVE]
    rebalance(first, {"m1": first}, 4)
    metadata = first.joined("m1").metadata
    (entry,) = metadata.owned_partitions
    assert (entry.topic, sorted(entry.partitions)) == ("lines", [0, 1, 2, 3])
    native = decode_subscription(bytes(metadata.user_data)).native
    assert [tuple(ranges) for ranges in native.owned_partitions] == [("lines", 0, 4)]
    assert native.owned_generation == 4
    assert first.listener.calls == [("assigned", TASKS)], "nothing was revoked for the join"


def test_only_what_moves_is_revoked_and_its_receiver_waits_one_rebalance():
    first, second = Member(1), Member(2)
    rebalance(first, {"m1": first}, 1)
    rebalance(first, {"m1": first, "m2": second}, 2)
    kept = sorted(first.assignor.tasks.active)
    moved = [task for task in TASKS if task not in kept]
    assert len(kept) == 2
    assert first.listener.calls[1:] == [("revoked", moved), ("assigned", kept)]
    assert second.listener.calls == [("assigned", [])]
    assert second.rejoins == 1, "it was asked to rejoin at once"
    rebalance(first, {"m1": first, "m2": second}, 3)
    assert second.listener.calls[1:] == [("assigned", moved)]
    assert first.listener.calls[3:] == [("assigned", kept)]


def test_a_cooperative_member_that_the_group_removed_has_lost_everything():
    first = Member(1)
    rebalance(first, {"m1": first}, 1)
    first.generation.generation_id = -1
    first.owned = set()  # the client has forgotten them before it joins again
    metadata = first.joined("m1").metadata
    assert first.listener.calls[-1] == ("lost", TASKS)
    assert list(metadata.owned_partitions) == []
    subscription = decode_subscription(bytes(metadata.user_data))
    assert (subscription.prev_tasks, subscription.native.owned_generation) == ((), -1)


def test_a_loss_whose_cause_is_logged_is_no_warning(caplog):
    caplog.set_level("INFO")
    first = Member(1)
    levels = []
    for generation, has_cause in enumerate((False, True, False)):
        rebalance(first, {"m1": first}, generation + 1)
        caplog.clear()
        first.generation.generation_id = -1
        if has_cause:
            assert first.assignor.driver.has_left()
        first.joined("m1")
        lines = records_of(caplog)
        levels += [each.levelname for each in lines if "membership=lost" in each.getMessage()]
    assert levels == ["WARNING", "INFO", "WARNING"]


def test_a_pin_up_to_2_3_keeps_a_member_eager():
    pinned = Member(1, upgrade_from="2.3")
    assert pinned.assignor.supported_protocols() == [RebalanceProtocol.EAGER]
    rebalance(pinned, {"m1": pinned}, 1)
    assert list(pinned.joined("m1").metadata.owned_partitions) == []
    assert pinned.listener.calls[-1] == ("revoked", TASKS)


def test_eager_and_cooperative_members_of_one_group_never_run_a_task_twice():
    first, second = Member(1), Member(2, rebalance_protocol="eager")
    rebalance(first, {"m1": first}, 1)
    rebalance(second, {"m1": first, "m2": second}, 2)
    assert not second.assignor.tasks.active
    rebalance(second, {"m1": first, "m2": second}, 3)
    assert sorted([*first.assignor.tasks.active, *second.assignor.tasks.active]) == TASKS
    three = Member(3)
    rebalance(first, {"m1": first, "m2": second, "m3": three}, 4)
    # Tasks that the eager member gave up before it joined are assigned at once.
    had = {task for calls in (first, second) for task in calls.assignor.tasks.active}
    assert len(had) + len(three.assignor.tasks.active) <= len(TASKS)


def test_hooks_are_called_with_whole_rebalances():
    ends = []

    class Hook(RebalanceHook):
        def on_rebalance_end(self, end):
            ends.append(end)

    first, second = Member(1, hooks=[Hook()]), Member(2, hooks=[])
    rebalance(first, {"m1": first}, 1)
    rebalance(first, {"m1": first, "m2": second}, 2)
    assert [end.generation for end in ends] == [1, 2]
    assert [end.outcome for end in ends] == [Outcome.SETTLED] * 2
    assert (len(ends[0].gained_tasks), len(ends[1].lost_tasks)) == (4, 2)
    assert ends[0].assignment_size > 0


@pytest.mark.parametrize("hooks", [None, [], [RebalanceHook()], [LoggingHook()]])
def test_each_rebalance_is_a_line_in_the_log_whatever_hooks_there_are(caplog, hooks):
    with caplog.at_level(logging.INFO, "assignor.observe.log_lines"):
        first = Member(1, hooks=hooks)
        rebalance(first, {"m1": first}, 1)
    lines = [each.getMessage() for each in records_of(caplog)]
    assert [line.split()[0] for line in lines] == ["leader", "generation=1"]


PINS = {"0.10.0": 1, "0.10.1": 2, "0.10.2": 2, "0.11.0": 2, "1.0": 2, "1.1": 2}
TO_1_1 = tuple(PINS)
TO_2_3 = (*TO_1_1, "2.0", "2.1", "2.2", "2.3")
TO_3_8 = (
    *TO_2_3,
    *("2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8"),
)
# Release, its latest version, the values of `upgrade.from` that its configuration accepts.
ACCEPTED = [
    ("0.10.2.2", 2, ("0.10.0",)),
    ("1.1.1", 2, ("0.10.0",)),
    ("2.0.1", 3, TO_1_1),
    ("2.3.1", 4, TO_1_1),
    ("2.4.1", 5, TO_2_3),
    ("3.2.3", 11, TO_2_3),
    ("3.9.1", 11, TO_3_8),
    ("4.3.0", 11, (*TO_3_8[TO_3_8.index("2.4") :], "3.9", "4.0", "4.1", "4.2")),
    ("native", 11, (*TO_3_8, "3.9", "4.0", "4.1", "4.2", "4.3")),
]


def first_version(**options):
    """The version of the first subscription of a member."""
    data = bytes(Member(1, **options).joined("m1").metadata.user_data)
    return int.from_bytes(data[:4])


@pytest.mark.kip("268-4", "core")
@pytest.mark.parametrize(
    ("options", "version"),
    [
        ({}, 11),
        ({"start_version": "latest"}, 101),
        ({"upgrade_from": "0.10.0"}, 1),
        ({"upgrade_from": "1.1"}, 2),
        ({"upgrade_from": "1.1", "start_version": "latest"}, 2),
        ({"upgrade_from": "2.4"}, 11),
    ],
)
def test_a_member_joins_with_its_latest_version_or_with_that_of_its_pin(options, version):
    assert first_version(**options) == version


@pytest.mark.kip("268-12", "core")
@pytest.mark.parametrize(("release", "latest", "accepted"), ACCEPTED)
def test_each_value_of_upgrade_from_is_written_as_its_series_wrote_or_refused_at_start(
    release, latest, accepted
):
    for value in (*TO_3_8, "3.9", "4.0", "4.1", "4.2", "4.3"):
        if value in accepted:
            pinned = PINS.get(value, latest)
            assert first_version(release=release, upgrade_from=value) == pinned, value
            continue
        with pytest.raises(ReleaseError, match="set one of the accepted values") as error:
            Member(1, release=release, upgrade_from=value)
        assert f"({', '.join(accepted)})" in str(error.value), value
    with pytest.raises(ReleaseError, match="is unknown to release"):
        Member(1, release=release, upgrade_from="nonsense")
