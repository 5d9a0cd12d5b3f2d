"""Cases of Kafka's layouts that mutation testing found untested."""

from uuid import UUID

import pytest

from encoding import (
    KAFKA_VERSIONS,
    Assignment,
    DecodeError,
    FutureSubscription,
    HostInfo,
    NativeAssignment,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    explain,
)
from encoding.kafka.compiled import minimal_size


def sums_of(count):
    return TaskOffsetSums.from_mapping({TaskId(0, part): part for part in range(count)})


@pytest.mark.parametrize("known", [(1, 2), (1,)])
def test_version_3_is_the_first_that_is_a_future(known):
    blob = (3).to_bytes(4, "big") + (5).to_bytes(4, "big")
    assert decode_subscription(blob, known) == FutureSubscription(3, 5)


def test_an_answer_with_a_trailer_for_later_readers_keeps_kafkas_numbers():
    later = NativeAssignment(version=103, commonly_supported_version=103)
    value = Assignment(
        version=11,
        commonly_supported_version=11,
        error_code=2,
        next_rebalance_ms=77,
        native=later,
    )
    back = decode_assignment(encode_assignment(value))
    assert not back.native.is_readable
    assert (back.error_code, back.next_rebalance_ms) == (2, 77)


def test_sums_list_up_to_eight_tasks_and_count_more():
    eight = "TaskOffsetSums(0_0: 0, 0_1: 1, 0_2: 2, 0_3: 3, 0_4: 4, 0_5: 5, 0_6: 6, 0_7: 7)"
    assert repr(sums_of(8)) == eight
    assert repr(sums_of(9)) == "TaskOffsetSums(9 tasks)"


def test_hashes_of_sums_follow_their_content():
    assert len({hash(sums_of(count)) for count in range(20)}) == 20
    named = [
        TaskOffsetSums.from_mapping({TaskId(0, 0, name): total})
        for name in (None, "a", "b")
        for total in (1, 2)
    ]
    assert len({hash(value) for value in named}) == 6
    assert hash(sums_of(3)) == hash(sums_of(3))


def test_a_process_with_only_an_id_has_default_values():
    value = Subscription(version=1, process_id=UUID(int=1))
    assert (value.latest_supported_version, value.user_endpoint) == (-1, None)
    assert (value.unique_field, value.error_code, dict(value.client_tags)) == (0, 0, {})


def test_of_many_equal_tasks_the_last_sum_counts():
    parts = [part * 7919 % 50 for part in range(2_000)]
    sums = TaskOffsetSums.from_columns([0] * 2_000, parts, range(2_000))
    last = {part: total for total, part in enumerate(parts)}
    assert [total for _, total in sums] == [last[part] for part in range(50)]


@pytest.mark.parametrize("version", range(1, 12))
def test_a_cut_blob_is_refused_by_the_name_of_its_field(version):
    supported = version if version > 2 else -1
    member = Subscription(
        version=version, latest_supported_version=supported, process_id=UUID(int=7)
    )
    answer = Assignment(version=version, commonly_supported_version=supported)
    for kind, blob, decode in (
        ("subscription", encode_subscription(member), decode_subscription),
        ("assignment", encode_assignment(answer), decode_assignment),
    ):
        for piece in explain(kind, blob):
            with pytest.raises(DecodeError) as caught:
                decode(blob[: piece.offset + piece.size - 1])
            where = f"the count of {kind} " if piece.type.startswith("[]") else f"{kind} "
            assert caught.value.what.startswith(f"{where}{piece.path} needs {piece.size} bytes, ")


def test_no_type_is_free():
    sizes = {"int8": 1, "int32": 4, "int64": 8, "uuid": 16, "bytes": 4, "string": 2}
    sizes |= {"java_utf": 2, "utf16": 4, "[]task_id": 4}
    assert {name: minimal_size(name) for name in sizes} == sizes


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
def test_wherever_a_blob_is_cut_the_error_names_its_version(version):
    hosts = {HostInfo("host", 1): [TopicPartition("t", 0)]}
    answer = Assignment(
        version=version,
        commonly_supported_version=version if version >= 3 else -1,
        active_tasks=(TaskId(0, 1),),
        standby_tasks={TaskId(0, 2): [TopicPartition("t", 2)]},
        partitions_by_host=hosts if version >= 2 else {},
        standby_partitions_by_host=hosts if version >= 6 else {},
    )
    member = Subscription(
        version=version,
        latest_supported_version=version if version >= 3 else -1,
        process_id=UUID(int=7),
        user_endpoint="host:1" if version >= 2 else None,
        task_offset_sums=TaskOffsetSums.from_mapping({TaskId(0, 1): -2}),
        client_tags={"zone": "a"} if version >= 11 else {},
    )
    for decode, data in (
        (decode_assignment, encode_assignment(answer)),
        (decode_subscription, encode_subscription(member)),
    ):
        for cut in range(4, len(data)):
            with pytest.raises(DecodeError) as caught:
                decode(data[:cut])
            assert (caught.value.version, caught.value.available) == (version, cut)
