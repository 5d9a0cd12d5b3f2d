"""Answers of every version, mutated by field and by byte: promises of a member for all of them."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encoding import (
    HostInfo,
    NativeAssignment,
    TaskId,
    TopicPartition,
    decode_assignment,
    encode_assignment,
)
from fuzz.corpus import read_corpus
from fuzz.member_answers import OPTION_BYTES, PARTITIONS, check_answer, member_of, partitions_of
from tests.costs import calls_of
from tests.nightly import examples

SEEDS = [seed for seed in read_corpus("seeds") if seed.target == "member_receive"]
# Of one join and one answer; about ten times what any of these answers has taken.
CALLS, BYTES = 20_000, 4 * 2**20
FEW = settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)


def split(seed):
    return seed.data[:-OPTION_BYTES], *seed.data[-OPTION_BYTES:]


def take(options, partitions, *blobs):
    """The member after these answers; checks each, its calls and its memory."""
    member = member_of(options)
    tracemalloc.start()
    try:
        for generation, blob in enumerate(blobs, start=1):
            tracemalloc.reset_peak()
            held, _ = tracemalloc.get_traced_memory()
            calls = calls_of(lambda: check_answer(member, partitions, blob, generation))  # noqa: B023
            assert calls < CALLS
            assert tracemalloc.get_traced_memory()[1] - held < BYTES
            if member.assignor.failed is not None:
                break
    finally:
        tracemalloc.stop()
    return member


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_what_an_honest_leader_answers_is_adopted(seed):
    blob, options, picked = split(seed)
    version = int.from_bytes(blob[:4])
    member = take(options & ~8, partitions_of(picked), blob)
    held = member.assignor.tasks
    assert tuple(held.active) == (TaskId(1, 0), TaskId(0, 0))[:: -1 if version == 101 else 1]
    assert tuple(held.standby) == (TaskId(1, 1),)


seeds = st.sampled_from(SEEDS)
options = st.integers(0, 31)
picked = st.sampled_from([split(seed)[2] for seed in SEEDS]) | st.integers(0, 63)


@st.composite
def changed_bytes(draw):
    blob = bytearray(split(draw(seeds))[0])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(blob) - 1)))
        match draw(st.sampled_from(("set", "cut", "drop", "insert", "repeat"))):
            case "set":
                blob[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
            case "cut":
                del blob[place:]
            case "drop":
                del blob[place : place + draw(st.integers(1, 8))]
            case "insert":
                blob[place:place] = draw(st.binary(max_size=8))
            case _:
                blob[place:place] = blob[place : place + 8] * draw(st.integers(1, 40))
    return bytes(blob)


@FEW
@given(options, picked, changed_bytes(), seeds)
def test_bytes_that_were_changed_end_no_member(options, picked, blob, seed):
    take(options, partitions_of(picked), blob, split(seed)[0], blob)


numbers = st.integers(-1, 3) | st.integers(-(2**31), 2**31 - 1)
tasks = st.builds(TaskId, numbers, numbers, st.sampled_from((None, None, None, "named")))
partitions = st.sampled_from(PARTITIONS) | st.builds(
    TopicPartition, st.sampled_from(("lines", "left", "right", "other")), numbers
)
inputs = st.lists(partitions, max_size=3)
hosts = st.dictionaries(st.sampled_from((HostInfo("here", 1), HostInfo("b", -1))), inputs)
FIELDS = {
    "commonly_supported_version": st.integers(-1, 12) | st.integers(-(2**31), 2**31 - 1),
    "active_tasks": st.lists(tasks, max_size=4).map(tuple),
    "standby_tasks": st.dictionaries(tasks, inputs, max_size=3),
    "partitions_by_host": hosts,
    "standby_partitions_by_host": hosts,
    "error_code": st.integers(-1, 5),
    "next_rebalance_ms": st.sampled_from((0, 1, -1, 2**63 - 1, 2**63 - 2, -(2**63))),
}
names = st.sampled_from(("lines", "left", "right", "assignment.protocol", "other"))
counts = st.integers(0, 3) | st.integers(0, 2**31 - 1)
NATIVE = {
    "sizes": st.lists(st.integers(0, 3) | st.integers(0, 2**22), max_size=3).map(tuple),
    "warmup_tasks": st.lists(tasks, max_size=3).map(tuple),
    "partition_counts": st.dictionaries(names, counts),
    "feature_levels": st.dictionaries(names, st.integers(0, 200)),
    "feature_epoch": st.integers(-1, 5),
    "next_version": st.integers(0, 120) | counts,
    "subscription_read": st.booleans(),
    "view_full": st.none() | st.binary(max_size=40),
    "view_delta": st.none() | st.binary(max_size=40),
    "view_reference": st.none() | st.binary(max_size=12),
}


def some_of(fields):
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def changed_fields(draw):
    """A valid answer with changed fields; as bytes if it can be encoded."""
    base = draw(seeds)
    value = replace(decode_assignment(split(base)[0]), **draw(some_of(FIELDS)))
    if value.native is not None or draw(st.booleans()):
        native = replace(value.native or NativeAssignment(), **draw(some_of(NATIVE)))
        value = replace(value, native=native)
    if value.version >= 101:
        value = replace(value, commonly_supported_version=max(101, value.version))
    return written(value)


def written(value):
    if value.version < 10:
        plain = {task[:2]: inputs for task, inputs in value.standby_tasks.items()}
        value = replace(
            value,
            active_tasks=tuple(TaskId(*task[:2]) for task in value.active_tasks),
            standby_tasks=plain,
        )
    return encode_assignment(value)


@FEW
@given(options, picked.map(partitions_of) | st.lists(partitions), changed_fields(), seeds)
def test_fields_that_were_changed_end_no_member(options, assigned, blob, seed):
    take(options, assigned, blob, split(seed)[0], blob)
