"""Time and size of blobs: Kafka's layouts against plain numpy, native ones against v11.

Run with `make bench` or `pytest benchmarks/encoding/codec.py --benchmark-only`. "numpy" is the time
that numpy alone needs to write three columns into records of the same size, or to read them; it is
measured in the same run, so the ratios hold on any machine.
"""

import timeit
from functools import partial
from time import process_time
from uuid import UUID

import numpy as np
import pytest

from benchmarks.rows import at_least, at_most, say, shown
from encoding import (
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    Assignment,
    HostInfo,
    NativeAssignment,
    NativeSubscription,
    PartitionsByHost,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    partition_ranges,
)

TASKS = 10_000
RECORD = np.dtype(
    [("subtopology", ">i4"), ("partition", ">i4"), ("offset_sum", ">i8"), ("name", ">i2")]
)
PART = "encoding"
RATIO = 3.0  # goal: at most so many times plain numpy
SMALL_MICROSECONDS = 40.0  # goal for a blob of 5 tasks, in any version
SHARED = 20.0  # goal: host maps of a group written once are so many times faster


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


def numpy_encode(three_columns):
    subtopologies, partitions, sums = three_columns
    records = np.empty(TASKS, RECORD)
    records["subtopology"] = subtopologies
    records["partition"] = partitions
    records["offset_sum"] = sums
    records["name"] = -1
    return records.tobytes()


def numpy_decode(data):
    records = np.frombuffer(data, RECORD)
    return (
        records["subtopology"].astype(np.int32),
        records["partition"].astype(np.int32),
        records["offset_sum"].astype(np.int64),
    )


COLUMNS = columns()
RAW = numpy_encode(COLUMNS)
LARGE = large()
LARGE_BYTES = encode_subscription(LARGE)


def best(call, argument, number):
    """Microseconds of CPU of one call, the best of seven rounds."""
    times = timeit.repeat(partial(call, argument), number=number, repeat=7, timer=process_time)
    return min(times) / number * 1e6


def small_subscription(version, native=None):
    sums = {TaskId(number, number): -2 if number % 2 else -3 for number in range(5)}
    return Subscription(
        version=version,
        latest_supported_version=max(11, version),
        process_id=UUID(int=1),
        user_endpoint="host:8080",
        task_offset_sums=TaskOffsetSums.from_mapping(sums),
        client_tags={"zone": "a"},
        native=native,
    )


def small_assignment(version, native=None):
    return Assignment(
        version=version,
        commonly_supported_version=max(11, version),
        active_tasks=tuple(TaskId(number, number) for number in range(5)),
        standby_tasks={TaskId(9, 1): [("changelog", 1)]},
        partitions_by_host={HostInfo(f"h{n}", 1): [("t", n), ("u", n)] for n in range(3)},
        native=native,
    )


def test_encode_10000_tasks(benchmark):
    benchmark(encode_subscription, LARGE)


def test_decode_10000_tasks(benchmark):
    benchmark(decode_subscription, LARGE_BYTES)


def test_ratio_to_plain_numpy(benchmark):
    rows = [
        ("encode", best(numpy_encode, COLUMNS, 300), best(encode_subscription, LARGE, 300)),
        ("decode", best(numpy_decode, RAW, 300), best(decode_subscription, LARGE_BYTES, 300)),
    ]
    print()
    for name, numpy_us, codec_us in rows:
        at_most(PART, f"{name} v11, {TASKS:,} tasks, over numpy", codec_us / numpy_us, RATIO, "x")
    benchmark.extra_info.update({name: codec_us / numpy_us for name, numpy_us, codec_us in rows})
    benchmark(numpy_decode, RAW)
    # The goal is for an idle machine; this limit finds a codec with a Python loop.
    assert all(codec_us / numpy_us < 4 * RATIO for _, numpy_us, codec_us in rows)


def test_small_blobs_by_version(benchmark):
    print(f"\n5 tasks, µs (goal {SMALL_MICROSECONDS})  subscription out / in   assignment out / in")
    slowest = {}
    cases = [(f"v{version}", version, False) for version in KNOWN_VERSIONS]
    cases.append((f"v{KAFKA_VERSIONS[-1]} with a trailer", KAFKA_VERSIONS[-1], True))
    for name, version, has_trailer in cases:
        sizes = (10,) * 10
        is_native = has_trailer or version > KAFKA_VERSIONS[-1]
        member = small_subscription(version, NativeSubscription(sizes=sizes) if is_native else None)
        answer = small_assignment(version, NativeAssignment(sizes=sizes) if is_native else None)
        blob, answer_blob = encode_subscription(member), encode_assignment(answer)
        times = [
            best(encode_subscription, member, 500),
            best(decode_subscription, blob, 500),
            best(encode_assignment, answer, 500),
            best(decode_assignment, answer_blob, 500),
        ]
        print(f"{name:<31}" + "".join(f"{value:10.1f}" for value in times))
        slowest[name] = max(times)
        assert max(times) < 4 * SMALL_MICROSECONDS
    worst = max(slowest, key=slowest.get)
    at_most(PART, f"5 tasks, slowest codec: {worst}", slowest[worst], SMALL_MICROSECONDS, "µs")
    benchmark(decode_subscription, blob)


SIZES = (TASKS // 100,) * 100


def group(clients, version, native_of):
    """Subscriptions of a group: each client runs its share of the tasks, with as many standbys."""
    share = TASKS // clients
    members = []
    for client in range(clients):
        actives = range(client, TASKS, clients)
        standbys = range((client + 7) % clients, TASKS, clients)
        sums = {TaskId(*divmod(n, 100)): n * 100_003 for n in standbys}
        sums |= {TaskId(*divmod(n, 100)): -2 for n in actives}
        assert len(sums) == 2 * share
        members.append(
            Subscription(
                version=version,
                latest_supported_version=version,
                process_id=UUID(int=2**100 + client),
                user_endpoint=f"streams-{client:04}.eu.example.org:8080",
                task_offset_sums=TaskOffsetSums.from_mapping(sums),
                client_tags={
                    "cluster": "k8s-cluster-1",
                    "zone": f"eu-central-1{'abc'[client % 3]}",
                },
                native=native_of(client, actives),
            )
        )
    return members


def all_keys(client, actives):
    """Every field of a native member with state."""
    partitions = [TopicPartition(f"orders-{n // 5000}", n % 5000) for n in actives]
    ends = {TaskId(*divmod(n, 100)): n * 100_019 for n in actives}
    return NativeSubscription(
        instance_id=f"streams-{client:04}",
        threads=4,
        rack="eu-central-1a",
        sizes=SIZES,
        fingerprint=b"8 bytes.",
        end_offset_sums=TaskOffsetSums.from_mapping(ends),
        owned_partitions=partition_ranges(partitions),
        owned_generation=1234,
        nonce=56_789,
        feature_ranges={"streams.wire": (11, 101)},
        adopted_levels={"streams.wire": 101},
        adopted_epoch=17,
        view_epoch=1234,
        view_checksum=0xDEADBEEF,
    )


def groups(clients):
    return {
        "v11": group(clients, 11, lambda *_: None),
        "native": group(clients, 101, lambda *_: NativeSubscription(sizes=SIZES)),
        "all keys": group(clients, 101, all_keys),
    }


@pytest.mark.parametrize("clients", [1000, 100])
def test_size_of_native_subscriptions(benchmark, clients):
    sizes = {
        name: sum(len(encode_subscription(member)) for member in members) / clients
        for name, members in groups(clients).items()
    }
    print(f"\nv11: {sizes['v11']:.1f} bytes")
    for name, goal in (("native", 0.5), ("all keys", 1.0)):
        ratio = sizes[name] / sizes["v11"]
        at_most(PART, f"subscription over v11, {name}, {clients} x {TASKS:,}", ratio, goal, "x")
        assert ratio <= goal
    benchmark(lambda: None)


def milliseconds(call, argument):
    """CPU milliseconds of one call, the best of nine."""
    return min(timeit.repeat(partial(call, argument), number=1, repeat=9, timer=process_time)) * 1e3


VIEW_BYTES = bytes(42_000)  # a full routing view of this group; bench_views measures views


def answers_of(clients, version):
    """The leader's answers; host maps or view are built once for all members."""
    hosts, standby = {}, {}
    for client in range(clients):
        host = HostInfo(f"streams-{client:04}.eu.example.org", 8080)
        hosts[host] = [("t" * 63, n) for n in range(client, TASKS, clients)]
        standby[host] = [("t" * 63, n) for n in range((client + 7) % clients, TASKS, clients)]
    shared = PartitionsByHost(hosts), PartitionsByHost(standby)
    is_native = version > KAFKA_VERSIONS[-1]
    return [
        Assignment(
            version=version,
            commonly_supported_version=version,
            active_tasks=tuple(TaskId(*divmod(n, 100)) for n in range(client, TASKS, clients)),
            standby_tasks={
                TaskId(*divmod(n, 100)): [("changelog", n)]
                for n in range((client + 7) % clients, TASKS, clients)
            },
            partitions_by_host={} if is_native else shared[0],
            standby_partitions_by_host={} if is_native else shared[1],
            native=NativeAssignment(sizes=SIZES, view_full=VIEW_BYTES) if is_native else None,
        )
        for client in range(clients)
    ]


def turnaround(metadata):
    """Decode and encode every subscription."""
    for data in metadata[0]:
        encode_subscription(decode_subscription(data))


def lead(metadata):
    """Decode all subscriptions and encode all answers, as the leader of a rebalance does.

    Host maps and views, which members share, are built before.
    """
    blobs, answers = metadata
    for data in blobs:
        decode_subscription(data)
    for answer in answers:
        encode_assignment(answer)


@pytest.mark.parametrize("clients", [1000, 100])
def test_time_of_metadata(benchmark, clients):
    members = groups(clients)
    metadata = {
        name: ([*map(encode_subscription, members[name])], answers_of(clients, version))
        for name, version in (("v11", 11), ("native", 101), ("all keys", 101))
    }
    print()
    for title, call in (("metadata of a rebalance", lead), ("  subscriptions alone", turnaround)):
        times = {name: milliseconds(call, blobs) for name, blobs in metadata.items()}
        for name in ("native", "all keys"):
            figure = f"{title}, {name}, {clients:,} x {TASKS:,}, over v11"
            ratio = times[name] / times["v11"]
            if call is lead and name == "native":
                at_most(PART, figure, ratio, 1.0, "x")
            else:
                say(PART, figure, f"{shown(ratio)} x")
        # This limit finds a codec with a Python loop.
        assert times["native"] < 8 * times["v11"]
    benchmark(lead, metadata["native"])


def test_assignments_that_share_host_maps(benchmark):
    """1,000 hosts, 10,000 partitions: the maps are written once for all members."""
    maps = {
        HostInfo(f"host-{host}", 8080): [("topic", host * 10 + n) for n in range(10)]
        for host in range(1000)
    }
    standby = PartitionsByHost()

    def answer_all(maps_of, members):
        for number in range(members):
            encode_assignment(
                Assignment(
                    version=11,
                    commonly_supported_version=11,
                    active_tasks=(TaskId(0, number),),
                    partitions_by_host=maps_of(),
                    standby_partitions_by_host=standby,
                )
            )

    def shared_by(members):
        hosts = PartitionsByHost(maps)
        answer_all(lambda: hosts, members)

    each = milliseconds(partial(answer_all, lambda: PartitionsByHost(maps)), 10) / 10
    shared = milliseconds(shared_by, 1000) / 1000
    print()
    name = "v11 answer of 1,000 members, host maps shared, faster by"
    at_least(PART, name, each / shared, SHARED, "x")
    benchmark(shared_by, 100)
