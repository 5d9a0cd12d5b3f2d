"""Exact messages of every refusal of Kafka's layouts, of offset sums and of JSON fields.

The messages, with all numbers, are in `golden/errors.json`.
"""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from encoding import (
    KNOWN_VERSIONS,
    Assignment,
    DecodeError,
    NativeSubscription,
    RebalanceError,
    Subscription,
    TaskId,
    TaskOffsetSums,
    assignment_from_fields,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscription_from_fields,
)
from tests.versions import LATER, NEWEST

NAMED = TaskId(0, 1, "n")
sums_of = TaskOffsetSums.from_mapping


def member(**fields):
    given = {"version": 11, "latest_supported_version": 11, "process_id": UUID(int=0)}
    return Subscription(**(given | fields))


def answer(**fields):
    return Assignment(**({"version": 11, "commonly_supported_version": 11} | fields))


def sentences(kind):
    path = Path(__file__).parents[1] / "golden" / "errors.json"
    found = json.loads(path.read_text(encoding="utf-8"))[kind]
    named = {
        "NEWEST": str(NEWEST),
        "LATER": str(LATER),
        "KNOWN": ", ".join(map(str, KNOWN_VERSIONS)),
    }
    return {id_: re.sub("NEWEST|LATER|KNOWN", lambda m: named[m[0]], s) for id_, s in found.items()}


KAFKA = {
    "subscription: sup<used": lambda: encode_subscription(member(latest_supported_version=10)),
    "subscription: sup -1 v3": lambda: encode_subscription(
        member(version=3, latest_supported_version=-1)
    ),
    "subscription: named9": lambda: encode_subscription(
        member(
            version=9,
            latest_supported_version=9,
            task_offset_sums=sums_of({NAMED: 1, TaskId(0, 0): 2}),
        )
    ),
    "subscription: named3": lambda: encode_subscription(
        member(version=3, latest_supported_version=3, task_offset_sums=sums_of({NAMED: 1}))
    ),
    "subscription: uniq": lambda: encode_subscription(member(unique_field=128)),
    "subscription: err": lambda: encode_subscription(member(error_code=2**31)),
    "subscription: errtype": lambda: encode_subscription(member(error_code="x")),
    "subscription: pid": lambda: encode_subscription(member(process_id="x")),
    "subscription: endpoint": lambda: encode_subscription(member(user_endpoint=7)),
    "subscription: tag": lambda: encode_subscription(member(client_tags={"a": 1})),
    "subscription: tagk": lambda: encode_subscription(member(client_tags={1: "a"})),
    "subscription: name long": lambda: encode_subscription(
        member(task_offset_sums=sums_of({TaskId(0, 1, "n" * 32768): 1}))
    ),
    "subscription: sup trailer": lambda: encode_subscription(
        member(latest_supported_version=LATER, native=NativeSubscription())
    ),
    "assignment: named9": lambda: encode_assignment(
        answer(version=9, active_tasks=(TaskId(0, 0), NAMED))
    ),
    "assignment: named9 st": lambda: encode_assignment(
        answer(version=9, standby_tasks={NAMED: ()})
    ),
    "assignment: task": lambda: encode_assignment(answer(active_tasks=(TaskId(2**31, 0),))),
    "assignment: task name": lambda: encode_assignment(answer(active_tasks=(TaskId(0, 0, 7),))),
    "assignment: standby part": lambda: encode_assignment(
        answer(standby_tasks={TaskId(0, 0): [("t", 2**31)]})
    ),
    "assignment: topic long": lambda: encode_assignment(
        answer(version=2, partitions_by_host={("h", 1): [("t" * 65536, 0)]})
    ),
    "assignment: host long": lambda: encode_assignment(
        answer(partitions_by_host={("h" * 65536, 1): []})
    ),
    "assignment: port": lambda: encode_assignment(answer(partitions_by_host={("h", 2**31): []})),
    "assignment: next": lambda: encode_assignment(answer(next_rebalance_ms=2**63)),
    "assignment: err": lambda: encode_assignment(answer(error_code=None)),
    "assignment: common": lambda: encode_assignment(answer(commonly_supported_version=2**31)),
    "sums: len": lambda: TaskOffsetSums.from_columns([0, 1], [0], [1]),
    "sums: len n": lambda: TaskOffsetSums.from_columns([0], [0], [1], ["a", "b"]),
    "sums: float": lambda: TaskOffsetSums.from_columns([0.5], [0], [1]),
    "sums: 2d": lambda: TaskOffsetSums.from_columns([[0]], [0], [1]),
    "sums: part float": lambda: TaskOffsetSums.from_columns([0], [0.5], [1]),
    "sums: sum float": lambda: TaskOffsetSums.from_columns([0], [0], [0.5]),
    "sums: lim": lambda: TaskOffsetSums.from_columns([2**31], [0], [1]),
    "sums: lim-": lambda: TaskOffsetSums.from_columns([-(2**31) - 1], [0], [1]),
    "sums: part lim": lambda: TaskOffsetSums.from_columns([0], [2**31], [1]),
    "sums: sum lim": lambda: TaskOffsetSums.from_columns([0], [0], [2**63]),
    "task": lambda: TaskId.parse("x"),
    "read subscription: v0": lambda: decode_subscription(bytes(30)),
    "read subscription: sup": lambda: decode_subscription(
        bytes.fromhex("0000000b0000000a") + bytes(40)
    ),
    "read subscription: dup": lambda: decode_subscription(
        encode_subscription(member(client_tags={"a": "1"}))[:-14]
        + bytes.fromhex("00000002" + ("00000001" + "61") * 4)
    ),
    "read assignment: topic": lambda: decode_assignment(
        encode_assignment(answer(version=5, partitions_by_host={("h", 1): [("t", 0)]})).replace(
            b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01t",
            b"\x00\x00\x00\x01\x00\x00\x00\x07\x00\x01t",
        )
    ),
    "da": lambda: decode_assignment(b"\x00\x00\x00c"),
    "subscription: version": lambda: encode_subscription(
        member(version=LATER, latest_supported_version=LATER)
    ),
    "assignment: version": lambda: encode_assignment(answer(version=LATER)),
}

FIELDS = {
    "member: version": lambda: subscription_from_fields({}),
    "member: versionb": lambda: subscription_from_fields({"version": True}),
    "member: sup": lambda: subscription_from_fields({"version": 3, "latest_supported": "x"}),
    "member: pid": lambda: subscription_from_fields({"version": 3, "process_id": "x"}),
    "member: ep": lambda: subscription_from_fields({"version": 3, "user_endpoint": 3}),
    "member: sums": lambda: subscription_from_fields({"version": 7, "task_offset_sums": 3}),
    "member: sums2": lambda: subscription_from_fields(
        {"version": 7, "task_offset_sums": [[1, 2, 3]]}
    ),
    "member: sums3": lambda: subscription_from_fields(
        {"version": 7, "task_offset_sums": [[1, 2, None, True]]}
    ),
    "member: sums4": lambda: subscription_from_fields(
        {"version": 7, "task_offset_sums": [[1, "2", None, 3]]}
    ),
    "member: prev": lambda: subscription_from_fields({"version": 3, "prev_tasks": 3}),
    "member: prev2": lambda: subscription_from_fields({"version": 3, "prev_tasks": [3]}),
    "member: stand": lambda: subscription_from_fields({"version": 3, "standby_tasks": [[1, 2, 3]]}),
    "member: stand2": lambda: subscription_from_fields({"version": 3, "standby_tasks": {}}),
    "member: uniq": lambda: subscription_from_fields({"version": 3, "unique_field": None}),
    "member: err": lambda: subscription_from_fields({"version": 3, "error_code": 1.0}),
    "member: tags": lambda: subscription_from_fields({"version": 3, "client_tags": []}),
    "member: tags2": lambda: subscription_from_fields({"version": 3, "client_tags": {"a": 1}}),
    "member: tags3": lambda: subscription_from_fields({"version": 3, "client_tags": {1: "a"}}),
    "member: native": lambda: subscription_from_fields({"version": 3, "native": []}),
    "member: native2": lambda: subscription_from_fields({"version": 3, "native": {"x": 1}}),
    "answer: version": lambda: assignment_from_fields({}),
    "answer: common": lambda: assignment_from_fields({"version": 3, "commonly_supported": None}),
    "answer: act": lambda: assignment_from_fields({"version": 3, "active_tasks": [[1]]}),
    "answer: act2": lambda: assignment_from_fields({"version": 3, "active_tasks": 3}),
    "answer: st": lambda: assignment_from_fields({"version": 3, "standby_tasks": [[1, 2, None]]}),
    "answer: st2": lambda: assignment_from_fields(
        {"version": 3, "standby_tasks": [[1, "2", None, []]]}
    ),
    "answer: st3": lambda: assignment_from_fields(
        {"version": 3, "standby_tasks": [[1, 2, None, [["t", "x"]]]]}
    ),
    "answer: st4": lambda: assignment_from_fields(
        {"version": 3, "standby_tasks": [[1, 2, None, 7]]}
    ),
    "answer: st5": lambda: assignment_from_fields({"version": 3, "standby_tasks": 7}),
    "answer: host": lambda: assignment_from_fields(
        {"version": 3, "partitions_by_host": [["h", 1]]}
    ),
    "answer: host2": lambda: assignment_from_fields(
        {"version": 3, "partitions_by_host": [["h", "1", []]]}
    ),
    "answer: host3": lambda: assignment_from_fields(
        {"version": 3, "partitions_by_host": [["h", 1, [["t"]]]]}
    ),
    "answer: hosts": lambda: assignment_from_fields(
        {"version": 3, "standby_partitions_by_host": 7}
    ),
    "answer: hosts2": lambda: assignment_from_fields(
        {"version": 3, "standby_partitions_by_host": [7]}
    ),
    "answer: hosts3": lambda: assignment_from_fields(
        {"version": 3, "standby_partitions_by_host": [["h", 1, [["t", None]]]]}
    ),
    "answer: next": lambda: assignment_from_fields({"version": 3, "next_rebalance_ms": "x"}),
    "answer: err": lambda: assignment_from_fields({"version": 3, "error_code": "x"}),
    "answer: native": lambda: assignment_from_fields({"version": 3, "native": 7}),
}


@pytest.mark.parametrize(
    ("call", "sentence"), [pytest.param(KAFKA[i], s, id=i) for i, s in sentences("kafka").items()]
)
def test_what_cannot_be_written_or_read_is_reported_in_full(call, sentence):
    with pytest.raises((RebalanceError, ValueError)) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("call", "sentence"), [pytest.param(FIELDS[i], s, id=i) for i, s in sentences("fields").items()]
)
def test_what_is_wrong_about_json_fields_is_reported_in_full(call, sentence):
    with pytest.raises(RebalanceError) as caught:
        call()
    assert str(caught.value) == sentence


def test_errors_keep_their_numbers_as_attributes():
    with pytest.raises(DecodeError) as caught:
        decode_subscription(bytes.fromhex("00000002") + bytes(20), (1,))
    error = caught.value
    assert (error.offset, error.version, error.available) == (0, 2, 24)
    assert error.what == "subscription is in version 2, which this reader does not know"
