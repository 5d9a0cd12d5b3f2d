"""Input that changes under a group, as in public reports: nothing is passed over in silence."""

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from assignor.adapters import kafka_python
from tests.assignor.adapters.reports.background import (
    ALL,
    COMMITTED,
    STORES,
    log_of,
    make_anew,
    running,
    transaction,
)
from tests.assignor.adapters.reports.logs import GROUP, TOPOLOGY, committed, filled, until, write

pytestmark = pytest.mark.usefixtures("clock")


def commit(broker, offset, partition=0):
    """Commit as an operator's tool, while the group is stopped."""
    with kafka_python.streams_consumer(
        TOPOLOGY, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers
    ) as consumer:
        consumer.unsubscribe()
        offsets = {TopicPartition("in", partition): OffsetAndMetadata(offset, "", -1)}
        consumer.commit(offsets, timeout_ms=60_000)


def warnings(caplog):
    """The lines of the table of the input."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "assignor.embedding.input_rules" and record.levelname == "WARNING"
    ]


@pytest.mark.parametrize("client", ["kafka_python", *sorted(STORES)])
def test_kafka_6607_and_librdkafka_3917_lag_of_transactional_input_reaches_0(client):
    with filled(0) as broker:
        end = transaction(broker, [b"a", b"b"], is_commit=True, producer_id=7)
        with running(client, broker, isolation_level=COMMITTED) as seen:
            until(lambda: committed(broker) == {0: end})
            # Behind a tail without any record that is returned.
            end = transaction(broker, [b"x"] * 3, is_commit=False, producer_id=8)
            until(lambda: committed(broker) == {0: end})
            end = transaction(broker, [b"c"], is_commit=True, producer_id=9)
            until(lambda: committed(broker) == {0: end})
    assert seen.records == [(0, 0), (0, 1), (0, 7)]


@pytest.mark.parametrize("client", sorted(ALL))
def test_kafka_8764_and_kafka_python_1707_a_restart_begins_behind_an_aborted_tail(client):
    with filled(2) as broker:
        with running(client, broker, isolation_level=COMMITTED) as seen:
            until(lambda: committed(broker) == {0: 2})
        end = transaction(broker, [b"x"] * 3, is_commit=False, producer_id=8)
        with running(client, broker, isolation_level=COMMITTED) as again:
            until(lambda: committed(broker) == {0: end})
    assert (seen.records, again.records) == ([(0, 0), (0, 1)], [])


@pytest.mark.parametrize("client", sorted(ALL))
def test_kafka_python_988_an_offset_beyond_the_end_is_a_warning_and_not_committed(client, caplog):
    with filled(4) as broker:
        commit(broker, 9)
        with running(client, broker) as seen:
            until(lambda: committed(broker) == {0: 4})
    assert seen.records == [(0, offset) for offset in range(4)]
    [line] = warnings(caplog)
    assert line.startswith("in [0]: offset 9 is beyond the end, 4: ")
    assert "offset 0 (auto_offset_reset=earliest)" in line


@pytest.mark.parametrize("client", ["kafka_python", *sorted(STORES)])
def test_librdkafka_3745_records_that_were_deleted_before_they_were_read_are_a_warning(
    client, caplog
):
    with filled(5) as broker:
        with running(client, broker) as seen:
            until(lambda: committed(broker) == {0: 5})

        def delete(embedded):
            log = log_of(embedded)
            log.start_offset = 8

        write(broker, range(5))
        broker.call(delete)
        with running(client, broker) as again:
            until(lambda: committed(broker) == {0: 10})
    assert [offset for _, offset in seen.records + again.records] == [0, 1, 2, 3, 4, 8, 9]
    [line] = warnings(caplog)
    assert line.startswith("in [0]: the records from offset 5 to 7 were deleted before they were")


@pytest.mark.parametrize("client", ["confluent", *sorted(STORES)])
def test_confluent_kafka_python_1787_a_topic_made_anew_while_it_is_read(client, caplog):
    with filled(5) as broker, running(client, broker) as seen:
        until(lambda: committed(broker) == {0: 5})
        make_anew(broker)
        write(broker, range(3))
        until(lambda: len(seen.records) == 8 and committed(broker) == {0: 3})
    assert [offset for _, offset in seen.records] == [0, 1, 2, 3, 4, 0, 1, 2]
    lines = warnings(caplog)
    assert any("made anew" in line and " 5" in line for line in lines)


@pytest.mark.parametrize(
    ("client", "records"), [*((client, 3) for client in sorted(STORES)), ("confluent_stores", 9)]
)
def test_a_topic_made_anew_while_the_group_is_stopped_is_processed_whole(client, records, caplog):
    with filled(5) as broker:
        with running(client, broker) as seen:
            until(lambda: committed(broker) == {0: 5})
        make_anew(broker)
        write(broker, range(records))
        with running(client, broker) as again:
            until(lambda: committed(broker) == {0: records})
    assert again.records == [(0, offset) for offset in range(records)]
    assert len(seen.records) == 5
    [line] = warnings(caplog)
    assert line.startswith("in [0]: the topic was made anew, and the state has its former one up")
    assert "up to offset 5; all records of the new one, from offset 0 on" in line


@pytest.mark.parametrize("client", sorted(STORES))
def test_a_group_whose_offsets_have_expired_continues_where_its_state_ends(client):
    """Also with "latest", with which Kafka Streams passes over what came meanwhile."""
    with filled(5) as broker:
        with running(client, broker) as seen:
            until(lambda: committed(broker) == {0: 5})
        broker.call(lambda embedded: embedded.cluster.delete_group(GROUP))
        write(broker, range(3))
        with running(client, broker, auto_offset_reset="latest") as again:
            until(lambda: committed(broker) == {0: 8})
    assert (len(seen.records), again.records) == (5, [(0, 5), (0, 6), (0, 7)])


@pytest.mark.parametrize("client", sorted(STORES))
def test_what_comes_while_nobody_reads_a_partition_is_not_passed_over_with_latest(client):
    """Where reading began is committed, although the partition has had no record since."""
    with filled(3) as broker:
        with running(client, broker, auto_offset_reset="latest") as seen:
            until(lambda: committed(broker) == {0: 3})
        write(broker, range(2))
        with running(client, broker, auto_offset_reset="latest") as again:
            until(lambda: committed(broker) == {0: 5})
    assert (seen.records, again.records) == ([], [(0, 3), (0, 4)])


@pytest.mark.parametrize("client", sorted(STORES))
def test_offsets_that_an_operator_has_set_back_are_a_warning(client, caplog):
    with filled(5) as broker:
        with running(client, broker) as seen:
            until(lambda: committed(broker) == {0: 5})
        commit(broker, 2)
        write(broker, range(1))
        with running(client, broker) as again:
            until(lambda: committed(broker) == {0: 6})
    assert len(seen.records) == 5
    assert again.records == [(0, 5)]
    [line] = warnings(caplog)
    assert line.startswith(
        "in [0]: the committed offset was set back to 2, and the state has input"
    )
