"""How fast blobs are written and read: 10,000 tasks against the numpy floor, small blobs in µs.

Run with `make bench` or `pytest benchmarks/bench_codec.py --benchmark-only`. The floor is what
numpy alone needs to put three columns into records of the same size, or to take them out; it is
measured in the same run, so the ratios hold on any machine.
"""

import timeit
from functools import partial
from uuid import UUID

import numpy as np
import pytest

from encoding import (
    KNOWN_VERSIONS,
    Assignment,
    HostInfo,
    PartitionsByHost,
    Subscription,
    TaskId,
    TaskOffsetSums,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

TASKS = 10_000
RECORD = np.dtype(
    [("subtopology", ">i4"), ("partition", ">i4"), ("offset_sum", ">i8"), ("name", ">i2")]
)
RATIO = 3.0  # goal: at most so many times the floor
SMALL_MICROSECONDS = 40.0  # goal for a blob of 5 tasks, in any version


def columns():
    subtopologies = np.repeat(np.arange(100, dtype=np.int32), TASKS // 100)
    partitions = np.tile(np.arange(TASKS // 100, dtype=np.int32), 100)
    return subtopologies, partitions, np.arange(TASKS, dtype=np.int64) * 1_000_003


def large():
    return Subscription(
        version=11,
        latest_supported_version=11,
        process_id=UUID(int=1),
        user_endpoint="host:8080",
        task_offset_sums=TaskOffsetSums.from_columns(*columns()),
    )


def floor_encode(three_columns):
    subtopologies, partitions, sums = three_columns
    records = np.empty(TASKS, RECORD)
    records["subtopology"] = subtopologies
    records["partition"] = partitions
    records["offset_sum"] = sums
    records["name"] = -1
    return records.tobytes()


def floor_decode(data):
    records = np.frombuffer(data, RECORD)
    return (
        records["subtopology"].astype(np.int32),
        records["partition"].astype(np.int32),
        records["offset_sum"].astype(np.int64),
    )


COLUMNS = columns()
RAW = floor_encode(COLUMNS)
LARGE = large()
LARGE_BYTES = encode_subscription(LARGE)


def best(call, argument, number):
    """Microseconds of one call, the best of seven rounds."""
    times = timeit.repeat(partial(call, argument), number=number, repeat=7)
    return min(times) / number * 1e6


def small_subscription(version):
    sums = {TaskId(number, number): -2 if number % 2 else -3 for number in range(5)}
    return Subscription(
        version=version,
        latest_supported_version=11,
        process_id=UUID(int=1),
        user_endpoint="host:8080",
        task_offset_sums=TaskOffsetSums.from_mapping(sums),
        client_tags={"zone": "a"},
    )


def small_assignment(version):
    return Assignment(
        version=version,
        commonly_supported_version=11,
        active_tasks=tuple(TaskId(number, number) for number in range(5)),
        standby_tasks={TaskId(9, 1): [("changelog", 1)]},
        partitions_by_host={HostInfo(f"h{n}", 1): [("t", n), ("u", n)] for n in range(3)},
    )


def test_encode_10000_tasks(benchmark):
    benchmark(encode_subscription, LARGE)


def test_decode_10000_tasks(benchmark):
    benchmark(decode_subscription, LARGE_BYTES)


def test_ratio_to_the_numpy_floor(benchmark):
    rows = [
        ("encode", best(floor_encode, COLUMNS, 300), best(encode_subscription, LARGE, 300)),
        ("decode", best(floor_decode, RAW, 300), best(decode_subscription, LARGE_BYTES, 300)),
    ]
    print(f"\nv11 subscription, {TASKS} tasks   floor µs   codec µs   ratio (goal {RATIO})")
    for name, floor, codec in rows:
        print(f"{name:<32} {floor:10.1f} {codec:10.1f} {codec / floor:7.2f}")
    benchmark.extra_info.update({name: codec / floor for name, floor, codec in rows})
    benchmark(floor_decode, RAW)
    # The goal is for a quiet machine; the alarm is for a codec that fell back to a loop.
    assert all(codec / floor < 4 * RATIO for _, floor, codec in rows)


def test_small_blobs_by_version(benchmark):
    print(f"\n5 tasks, µs (goal {SMALL_MICROSECONDS})  subscription out / in   assignment out / in")
    for version in KNOWN_VERSIONS:
        member, answer = small_subscription(version), small_assignment(version)
        blob, answer_blob = encode_subscription(member), encode_assignment(answer)
        times = [
            best(encode_subscription, member, 500),
            best(decode_subscription, blob, 500),
            best(encode_assignment, answer, 500),
            best(decode_assignment, answer_blob, 500),
        ]
        print(f"v{version:<30}" + "".join(f"{value:10.1f}" for value in times))
        assert max(times) < 4 * SMALL_MICROSECONDS
    benchmark(decode_subscription, blob)


@pytest.mark.parametrize("members", [1, 100])
def test_assignments_that_share_host_maps(benchmark, members):
    """1,000 hosts, 10,000 partitions: the maps are written once for all members."""
    maps = {
        HostInfo(f"host-{host}", 8080): [("topic", host * 10 + n) for n in range(10)]
        for host in range(1000)
    }

    def answer_all():
        hosts = PartitionsByHost(maps)
        standby = PartitionsByHost()
        for number in range(members):
            encode_assignment(
                Assignment(
                    version=11,
                    commonly_supported_version=11,
                    active_tasks=(TaskId(0, number),),
                    partitions_by_host=hosts,
                    standby_partitions_by_host=standby,
                )
            )

    benchmark(answer_all)
