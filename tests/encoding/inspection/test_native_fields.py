"""The native part as JSON and back; JSON without a native part is unchanged."""

import dataclasses
import json

import pytest
from hypothesis import given

from encoding import (
    EncodeError,
    NativeSubscription,
    TaskId,
    assignment_from_fields,
    assignment_to_fields,
    subscription_from_fields,
    subscription_to_fields,
)
from tests.encoding.native_strategies import native_assignments, native_parts, native_subscriptions
from tests.encoding.strategies import assignments, subscriptions


@given(native_subscriptions())
def test_native_subscriptions_and_their_fields_are_equivalent(value):
    fields = json.loads(json.dumps(subscription_to_fields(value)))
    assert subscription_from_fields(fields) == value


@given(native_assignments())
def test_native_assignments_and_their_fields_are_equivalent(value):
    fields = json.loads(json.dumps(assignment_to_fields(value)))
    assert assignment_from_fields(fields) == value


@given(subscriptions(), native_parts("subscription"))
def test_a_native_part_is_shown_only_where_there_is_one(value, native):
    assert "native" not in subscription_to_fields(value)
    both = dataclasses.replace(value, native=native)
    fields = subscription_to_fields(both)
    assert {k: v for k, v in fields.items() if k != "native"} == subscription_to_fields(value)
    assert subscription_from_fields(fields) == both


@given(assignments())
def test_answers_of_kafka_show_no_native_part(value):
    assert "native" not in assignment_to_fields(value)


def test_missing_fields_are_defaults_and_null_is_no_native_part():
    assert subscription_from_fields({"version": 11, "native": None}).native is None
    assert subscription_from_fields({"version": 11, "native": {}}).native == NativeSubscription()
    low = {"version": 3, "task_offset_sums": [[0, 1, None, 5]], "prev_tasks": [[0, 9, None]]}
    assert dict(subscription_from_fields(low | {"native": {}}).task_offset_sums) == {
        TaskId(0, 1): 5
    }
    assert dict(subscription_from_fields(low).task_offset_sums) == {TaskId(0, 9): -2}


@pytest.mark.parametrize(
    ("native", "field", "message"),
    [
        ([], "native", "an object or null"),
        ({"racks": "a"}, "native.racks", "no such field; known are version"),
        ({"latest_supported_version": 1}, "native.latest_supported_version", "no such field"),
        ({"rack": []}, "native.rack", "one number, text, true, false or null"),
        ({"sizes": 5}, "native.sizes", "a JSON list"),
        ({"sizes": [True]}, "native.sizes", "a list of integers"),
        ({"fingerprint": "xx"}, "native.fingerprint", "bytes in hex"),
        ({"fingerprint": []}, "native.fingerprint", "a JSON text"),
        ({"subtopologies": ["a"]}, "native.subtopologies", "a list of integers"),
        ({"end_offset_sums": [[0, 1]]}, "native.end_offset_sums", "a list of [subtopology"),
        ({"owned_partitions": [["t", 1]]}, "native.owned_partitions", "[topic, start, stop]"),
        ({"feature_ranges": {"f": 1}}, "native.feature_ranges", "[lowest, highest] by name"),
        ({"adopted_levels": []}, "native.adopted_levels", "a JSON object"),
    ],
)
def test_wrong_fields_are_refused_by_name(native, field, message):
    with pytest.raises(EncodeError) as caught:
        subscription_from_fields({"version": 11, "native": native})
    assert caught.value.field == field
    assert message in caught.value.reason


@pytest.mark.parametrize(
    ("name", "given", "refused", "expected"),
    [
        ("rack", ["a"], ["a"], "one number, text, true, false or null"),
        ("fingerprint", "0", "0", "bytes in hex, two digits each"),
        ("fingerprint", 7, 7, "a JSON text"),
        ("owned_partitions", [["t", 0, 1], ["t", "x", 1]], ["t", "x", 1], "ranges as [topic"),
        ("owned_partitions", [["t", 0, None]], ["t", 0, None], "ranges as [topic, start, stop]"),
        ("feature_ranges", {"a": [1, 2], "b": [1]}, [1], "[lowest, highest] by name"),
        ("feature_ranges", {"a": [1, "2"]}, [1, "2"], "[lowest, highest] by name"),
        ("subtopologies", [1, None], [1, None], "a list of integers"),
    ],
)
def test_the_part_that_is_wrong_is_named_and_shown(name, given, refused, expected):
    with pytest.raises(EncodeError) as caught:
        subscription_from_fields({"version": 11, "native": {name: given}})
    error = caught.value
    assert (error.field, error.value, error.version) == (f"native.{name}", refused, None)
    assert error.reason.startswith(f"give {expected}")


def test_wrong_tasks_of_an_answer_are_refused_by_name():
    with pytest.raises(EncodeError, match=r"native\.warmup_tasks"):
        assignment_from_fields({"version": 11, "native": {"warmup_tasks": [[0]]}})
