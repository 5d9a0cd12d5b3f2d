"""State, committed offset, changelog and input that disagree: each combination is a partition.

A restart may count nothing twice, and lose nothing without a line of the log, except where nothing
tells that anything is missing.
"""

import threading
from contextlib import contextmanager
from itertools import product

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from assignor.adapters.kafka_python import StreamsApplication
from assignor.embedding import COMMIT_METADATA
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.reports.logs import COUNTING, COUNTS, GROUP, SESSION, until

pytestmark = pytest.mark.usefixtures("clock")

# The state has records 0 to 9, in two commits; eight more follow, or two after one of them is lost.
FIRST, ALL, CUT, MORE = 6, 10, 9, 8
COMMITTED = {
    "none": None,
    "behind": (4, COMMIT_METADATA),
    "at": (ALL, COMMIT_METADATA),
    "set back": (4, ""),
    "set forward": (13, ""),
}
CASES = [*product(COMMITTED, ("whole", "tail lost", "new"), ("more", "cut"))]
# Records that write nothing to state are only in the committed offset, so that the first looks
# right. In the others the input has grown beyond the offset again, which its leader epoch alone
# would tell.
UNKNOWN = {
    ("at", "tail lost", "more"),
    ("at", "tail lost", "cut"),
    ("at", "whole", "cut"),
    ("behind", "whole", "cut"),
}
# "latest" is meant for a group without state and without offsets.
LATEST = {("none", "new", "more"), ("none", "new", "cut")}


@contextmanager
def application(broker, seen, reset):
    def handle(record, state):
        state[COUNTS].put(record.value.decode(), state[COUNTS].get(record.value.decode(), 0) + 1)
        seen.append(record.value)

    stop = threading.Event()
    options = {"group_id": GROUP, "bootstrap_servers": broker.bootstrap_servers, **SESSION}
    with StreamsApplication(
        COUNTING, handle, stores=[COUNTS], **options | {"auto_offset_reset": reset}
    ) as app:
        thread = threading.Thread(target=app.run, args=(stop,))
        thread.start()
        try:
            yield app
        finally:
            stop.set()
            thread.join()


def write(broker, counts):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, batch_size=0) as producer:
        for partition, values in enumerate(counts):
            for value in values:
                producer.send("in", b"%d" % value, partition=partition)


def cut(log, end):
    while log._batches and log._last_offsets[-1] >= end:
        log._batches.pop()
        log._last_offsets.pop()
    log.end_offset = end


def ends(broker, topic):
    found = broker.end_offsets()
    return [found[key] for key in sorted(found) if key.topic == topic]


def disagree(broker, middle):
    """Have changelogs, input and committed offsets lose what the cases say."""

    def lose(embedded):
        for number, (_, changelog, source) in enumerate(CASES):
            log = embedded.cluster.catalog.log(f"{GROUP}-{COUNTS.name}-changelog", number)
            cut(log, {"whole": log.end_offset, "tail lost": middle[number], "new": 0}[changelog])
            if source == "cut":
                cut(embedded.cluster.catalog.log("in", number), CUT)
        embedded.cluster.delete_group(GROUP)

    broker.call(lose)
    given = {
        TopicPartition("in", number): OffsetAndMetadata(*found, -1)
        for number, (committed, *_) in enumerate(CASES)
        if (found := COMMITTED[committed]) is not None
    }
    consumer = KafkaConsumer(group_id=GROUP, bootstrap_servers=broker.bootstrap_servers)
    consumer.commit(given, timeout_ms=60_000)
    consumer.close()


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_nothing_counts_twice_and_nothing_is_lost_in_silence(caplog, reset):
    caplog.set_level("INFO", logger="assignor")
    number = len(CASES)
    with running_broker(BrokerConfig(topics={"in": number})) as broker:
        changelog, seen = f"{GROUP}-{COUNTS.name}-changelog", []
        with application(broker, seen, "earliest"):
            write(broker, [range(FIRST)] * number)
            until(lambda: len(seen) == FIRST * number)
            until(lambda: sum(ends(broker, "in")) == sum(at.offset for at in committed(broker)))
            middle = ends(broker, changelog)
            write(broker, [range(FIRST, ALL)] * number)
            until(lambda: sum(at.offset for at in committed(broker)) == ALL * number)
        disagree(broker, middle)
        more = {"more": range(ALL, ALL + MORE), "cut": range(100, 102)}
        write(broker, [more[source] for *_, source in CASES])
        caplog.clear()
        with application(broker, seen, reset) as app:
            # Whatever a partition begins at, its end is committed once it has been read.
            until(lambda: [at.offset for at in committed(broker)] == ends(broker, "in"))
            states = [app.stores.local_state(COUNTS, n)[COUNTS] for n in range(number)]
            found = [dict(state.items()) for state in states]
    lines = [r.getMessage() for r in caplog.records if r.name == "assignor.embedding.input_rules"]
    silent = set()
    for at, (case, counts) in enumerate(zip(CASES, found, strict=True)):
        assert {*counts.values()} <= {1}, case
        present = range(ALL + MORE) if case[2] == "more" else [*range(CUT), 100, 101]
        has_line = any(line.startswith(f"in [{at}]: ") for line in lines)
        if {*map(str, present)} - counts.keys() and not has_line:
            silent.add(case)
    assert silent == UNKNOWN | (LATEST if reset == "latest" else set())


def committed(broker):
    found = broker.committed(GROUP)
    return [found[key] for key in sorted(found) if key.topic == "in"]
