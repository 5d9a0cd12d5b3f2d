"""JSON fields: defaults, both forms of tasks, and messages for invalid ones."""

import json
from uuid import UUID

import pytest

from encoding import (
    NO_REBALANCE,
    Assignment,
    EncodeError,
    FutureSubscription,
    Subscription,
    TaskId,
    assignment_from_fields,
    assignment_to_fields,
    subscription_from_fields,
    subscription_to_fields,
)

SUMS = [[0, 0, None, -2], [0, 1, None, 7]]


def test_missing_fields_take_their_defaults():
    nobody = Subscription(version=1, process_id=UUID(int=0))
    assert subscription_from_fields({"version": 1}) == nobody
    assert (nobody.error_code, nobody.unique_field, nobody.user_endpoint) == (0, 0, None)
    assert assignment_from_fields({"version": 7}) == Assignment(version=7)
    assert assignment_to_fields(Assignment(version=7))["next_rebalance_ms"] == NO_REBALANCE


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"version": 7, "task_offset_sums": SUMS}, [-2, 7]),
        ({"version": 6, "task_offset_sums": SUMS}, [-2, 7]),
        ({"version": 7, "prev_tasks": [[0, 0]], "standby_tasks": [[0, 1, None]]}, [-2, -3]),
        ({"version": 7, "prev_tasks": [[0, 1]], "task_offset_sums": SUMS}, [-2, 7]),
        ({"version": 6, "prev_tasks": [[0, 1]], "task_offset_sums": SUMS}, [-2]),
        ({"version": 6, "prev_tasks": [], "task_offset_sums": SUMS}, [-2, 7]),
        ({"version": 6, "standby_tasks": [[0, 1]], "task_offset_sums": SUMS}, [-3]),
        ({"version": 6, "prev_tasks": [[0, 0]], "standby_tasks": [[0, 0, ""]]}, [-3]),
    ],
)
def test_tasks_may_be_given_as_sums_or_as_lists(fields, expected):
    assert [total for _, total in subscription_from_fields(fields).task_offset_sums] == expected


def test_a_future_subscription_shows_its_two_numbers():
    shown = subscription_to_fields(FutureSubscription(12, 13))
    assert shown == {"version": 12, "latest_supported": 13}


def test_fields_are_plain_json():
    answer = Assignment(
        version=11,
        active_tasks=(TaskId(0, 1, "\ud800"),),
        standby_tasks={TaskId(0, 2): [("t", 1)]},
        partitions_by_host={("h", 1): [("t", 1)]},
    )
    fields = json.loads(json.dumps(assignment_to_fields(answer)))
    assert fields["active_tasks"] == [[0, 1, "\ud800"]]
    assert fields["standby_tasks"] == [[0, 2, None, [["t", 1]]]]
    assert fields["partitions_by_host"] == [["h", 1, [["t", 1]]]]
    assert assignment_from_fields(fields) == answer


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", None),
        ("version", True),
        ("version", "1"),
        ("latest_supported", 1.5),
        ("process_id", "nobody"),
        ("process_id", None),
        ("user_endpoint", 5),
        ("prev_tasks", "0_1"),
        ("prev_tasks", ["0_1"]),
        ("prev_tasks", [[0]]),
        ("standby_tasks", [[0, "1"]]),
        ("standby_tasks", [[0, 1, 2]]),
        ("task_offset_sums", [[0, 1, 2]]),
        ("task_offset_sums", [[0, 1, None, "5"]]),
        ("task_offset_sums", [5]),
        ("client_tags", [["a", "b"]]),
        ("client_tags", {"a": 1}),
        ("client_tags", None),
    ],
)
def test_wrong_subscription_fields_are_named(name, value):
    with pytest.raises(EncodeError, match="give ") as caught:
        subscription_from_fields({"version": 11, name: value})
    assert caught.value.field.startswith(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", None),
        ("commonly_supported", "x"),
        ("active_tasks", [[0, None]]),
        ("active_tasks", 5),
        ("standby_tasks", [[0, 1, None]]),
        ("standby_tasks", [[0, 1, None, 5]]),
        ("standby_tasks", [[0, 1, None, [["t"]]]]),
        ("partitions_by_host", [["h", "1", []]]),
        ("partitions_by_host", [["h", 1]]),
        ("standby_partitions_by_host", [["h", 1, [[5, 5]]]]),
        ("error_code", None),
        ("next_rebalance_ms", "never"),
    ],
)
def test_wrong_assignment_fields_are_named(name, value):
    with pytest.raises(EncodeError, match="give ") as caught:
        assignment_from_fields({"version": 11, name: value})
    assert caught.value.field == name
