"""Records that cannot be processed: what fails, what is skipped, and what is written elsewhere."""

import signal
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from assignor import BadRecordAction, BadRecordStage, ConfigError, DeadLetter
from assignor.embedding import ClusterUnavailable
from assignor.embedding.state_stores.records import COMMIT_KEY
from assignor.embedding.state_stores.writing import COMMIT_SIZE
from assignor.stores import OutputTooLarge, RecordTooLarge, StoreError
from tests.assignor.embedding.state_stores.logs import (
    INPUTS,
    Cluster,
    Killed,
    Member,
    Steps,
    restored,
)

SKIP, FAIL = BadRecordAction.SKIP, BadRecordAction.FAIL
DEAD = DeadLetter("dead")
POISON = "odd"


def fill(cluster, words):
    """Write records with keys, values and headers, as clients have them."""
    cluster.write(*words)
    for records in cluster.input.values():
        for record in records:
            record.key, record.value = record.word.encode(), b"value"
            record.headers = [("trace", b"1"), ("__streams.errors.offset", b"of before")]


@pytest.fixture
def cluster():
    made = Cluster()
    fill(made, ["one", "two", POISON, "three", POISON, "four", "one"])
    return made


def without_poison(cluster):
    words = Counter(r.word for rows in cluster.input.values() for r in rows if r.word != POISON)
    letters = Counter()
    for word, number in words.items():
        letters[word[0]] += number
    return {"by-word": dict(words), "by-letter": dict(letters)}


def poisoned(owner, error=None):
    """Have a member's function raise for some records, after it has written something."""
    error = error or ValueError("not understood")
    count = owner.count

    def handle(record, state):
        if record.word == POISON:
            state[owner.words].put("half of it", 1)
            raise error
        count(record, state)

    owner.count = handle


def letters_of(cluster):
    return {sent: number for sent, number in cluster.outputs.items() if sent[0] == "dead"}


@pytest.mark.parametrize("action", [SKIP, DEAD, lambda bad: SKIP if bad.task else FAIL])
def test_a_skipped_record_writes_nothing_and_all_others_count(cluster, member, action, caplog):
    owner = member(on_bad_record=action)
    poisoned(owner)
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == without_poison(cluster)
    assert cluster.committed == {each: len(rows) for each, rows in cluster.input.items()}
    kind = "dead letter" if action is DEAD else "skip"
    assert owner.stores.work.bad_records == {(BadRecordStage.PROCESSING, kind): 2}
    lines = [line for line in caplog.messages if "not understood" in line]
    assert len(lines) == 2
    assert "orders [0], offset 1, task 0_0: the record is " in lines[0]


def test_a_dead_letter_has_the_record_and_its_error(cluster, member):
    owner = member(on_bad_record=DEAD)
    poisoned(owner)
    owner.assign()
    owner.finish()
    first, second = letters_of(cluster)  # in the order of their offsets
    assert first[:5] == ("dead", b"odd", b"value", None, ("trace", b"1"))
    headers = dict(first[5:])
    stack = headers.pop("__streams.errors.stacktrace").decode()
    assert headers == {
        "__streams.errors.exception": b"builtins.ValueError",
        "__streams.errors.message": b"not understood",
        "__streams.errors.topic": b"orders",
        "__streams.errors.partition": b"0",
        "__streams.errors.offset": b"1",
    }
    assert "in handle" in stack
    assert dict(second[5:])["__streams.errors.offset"] == b"2"


def test_a_kill_at_any_step_loses_no_dead_letter_and_counts_nothing_twice(tmp_path):
    at = 0
    while True:
        at += 1
        cluster, steps = Cluster(), Steps(at=at)
        fill(cluster, ["one", POISON, "two", "three"])
        died = False
        for name in ("first", "second"):
            state_dir = tmp_path / f"{at}-{name}"
            state_dir.mkdir()
            owner = Member(cluster, state_dir=state_dir, steps=steps, on_bad_record=DEAD)
            poisoned(owner)
            try:
                owner.assign()
                owner.finish(records=2)
            except Killed:
                died = True
            with suppress(Killed):
                owner.stores.close()
            if steps.taken < at:
                break
        assert restored(cluster) == without_poison(cluster), at
        assert {key for _, key, *_ in letters_of(cluster)} == {b"odd"}, at
        if not died:
            break
    assert at > 20


def test_by_default_the_first_bad_record_ends_the_call_and_is_named(cluster, member, caplog):
    owner = member()
    poisoned(owner)
    owner.assign()
    with pytest.raises(ValueError, match="not understood") as raised:
        owner.finish()
    assert raised.value.__notes__ == ["orders [0], offset 1, task 0_0"]
    assert "the function that processes records has raised ValueError" in caplog.text
    assert owner.stores.work.bad_records == {}


def test_a_decision_that_is_none_fails_with_both_errors(cluster, member):
    owner = member(on_bad_record=lambda _: "skip")
    poisoned(owner)
    owner.assign()
    with pytest.raises(TypeError, match="on_bad_record returned 'skip'") as raised:
        owner.finish()
    assert isinstance(raised.value.__context__, ValueError)


@pytest.mark.parametrize(
    "error", [ClusterUnavailable("no broker"), StoreError("no disk"), MemoryError("full")]
)
def test_what_says_nothing_of_a_record_is_never_skipped(cluster, member, error):
    owner = member(on_bad_record=SKIP)
    poisoned(owner, error)
    owner.assign()
    with pytest.raises(type(error)):
        owner.finish()
    assert owner.stores.work.bad_records == {}


def test_what_a_signal_handler_raises_is_no_bad_record(cluster, member):
    def end(number, frame):
        raise RuntimeError("to end")

    owner = member(on_bad_record=SKIP)
    before = signal.signal(signal.SIGUSR1, end)
    try:
        poisoned(owner)
        count = owner.count

        def handle(record, state):
            end(signal.SIGUSR1, None)
            count(record, state)

        owner.count = handle
        owner.assign()
        with pytest.raises(RuntimeError, match="to end"):
            owner.finish()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("action", [SKIP, DEAD])
def test_an_output_that_is_refused_is_that_of_one_record(cluster, member, action):
    """A broker refuses it when it is acknowledged, with all other outputs of its batch."""
    owner = member(on_bad_record=action)
    flush = owner.access.flush

    def refusing():
        if any(sent[:2] == ("out", b"odd") for sent in owner.access.sent):
            owner.access.sent = []
            raise OutputTooLarge("topic out cannot be written: a record is too large")
        flush()

    owner.access.flush = refusing
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == without_poison(cluster)
    kind = "dead letter" if action is DEAD else "skip"
    assert owner.stores.work.bad_records == {(BadRecordStage.PRODUCTION, kind): 2}
    sent = Counter(key.decode() for topic, key, *_ in cluster.outputs if topic == "out")
    assert sent.keys() == without_poison(cluster)["by-word"].keys()
    assert len(letters_of(cluster)) == (2 if action is DEAD else 0)


def test_a_record_whose_output_is_refused_may_raise_too(cluster, member):
    """Its output waits for the broker while the record is passed over."""
    owner = member(on_bad_record=SKIP)
    flush, count = owner.access.flush, owner.count

    def refusing():
        if any(sent[:2] == ("out", b"odd") for sent in owner.access.sent):
            owner.access.sent = []
            raise OutputTooLarge("topic out cannot be written: a record is too large")
        flush()

    def handle(record, state):
        count(record, state)
        if record.word == POISON:
            raise ValueError("not understood")

    owner.access.flush, owner.count = refusing, handle
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == without_poison(cluster)
    assert owner.stores.work.bad_records[BadRecordStage.PRODUCTION, "skip"] == 2


@pytest.mark.parametrize("error", [ConnectionResetError("of the hook"), ClusterUnavailable("its")])
def test_an_error_of_the_decision_ends_the_member(cluster, member, error):
    """No loop takes it for one of its client, after which it would try again."""
    owner = member(on_bad_record=Mock(side_effect=error))
    poisoned(owner)
    owner.assign()
    with pytest.raises(RuntimeError, match="on_bad_record has raised") as raised:
        owner.finish()
    assert type(raised.value) is RuntimeError
    assert raised.value.__cause__ is error


def test_a_dead_letter_that_is_refused_fails(cluster, member):
    owner = member(on_bad_record=DEAD)
    poisoned(owner)

    def refusing():
        if any(sent[0] == "dead" for sent in owner.access.sent):
            owner.access.sent = []
            raise OutputTooLarge("topic dead cannot be written: a record is too large")

    owner.access.flush = refusing
    owner.assign()
    with pytest.raises(OutputTooLarge, match="topic dead") as raised:
        owner.finish()
    assert "this is the dead letter of" in raised.value.__notes__[0]


def test_what_one_record_writes_to_a_changelog_may_be_refused_too(cluster, member):
    owner = member(on_bad_record=SKIP)
    append = owner.access.append

    def refusing(records):
        commits = [r.value for r in records if r.key == COMMIT_KEY]
        if any(b"odd" in value for value in commits):
            raise RecordTooLarge("changelog app-by-word-changelog cannot be written")
        return append(records)

    owner.access.append = refusing
    owner.assign()
    owner.finish()
    assert owner.stores._processing._commit_size == COMMIT_SIZE  # no other commit is divided
    assert owner.state() == restored(cluster) == without_poison(cluster)
    assert owner.stores.work.bad_records == {(BadRecordStage.PRODUCTION, "skip"): 2}


def test_a_record_of_a_client_that_has_deserialized_it_is_no_dead_letter(cluster, member):
    owner = member(on_bad_record=DEAD)
    poisoned(owner)
    for records in cluster.input.values():
        for record in records:
            record.value = {"a": 1}
    owner.assign()
    with pytest.raises(TypeError, match="the value is no bytes") as raised:
        owner.finish()
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize("given", ["skip", None, 1, SimpleNamespace()])
def test_what_is_no_decision_is_refused(member, given):
    with pytest.raises(ConfigError, match="on_bad_record"):
        member(on_bad_record=given)


def test_a_dead_letter_has_what_every_client_can_write(cluster, member):
    """kafka-python writes no header of null, and no record with neither key nor value."""
    owner = member(on_bad_record=DEAD)
    poisoned(owner)
    for records in cluster.input.values():
        for record in records:
            record.key, record.value, record.headers = None, None, [("null", None)]
    owner.assign()
    owner.finish()
    for _topic, key, value, _partition, *headers in letters_of(cluster):
        assert (key, value, dict(headers)["null"]) == (None, b"", b"")


def test_a_dead_letter_into_an_input_is_refused(cluster, member):
    with pytest.raises(ConfigError, match="is an input: the record would fail"):
        member(on_bad_record=DeadLetter(INPUTS[0].topic))


@pytest.mark.parametrize("topic", ["", "a b", None])
def test_a_topic_of_dead_letters_has_a_name(topic):
    with pytest.raises(ConfigError, match="dead letters"):
        DeadLetter(topic)


def test_records_with_methods_are_read_as_those_of_confluent_kafka(cluster, member):
    """Each attribute of confluent-kafka's message is a method."""
    seen = []
    owner = member(on_bad_record=lambda bad: seen.append(bad) or SKIP)
    poisoned(owner)
    record = cluster.input[INPUTS[0]][1]
    owner.assign()
    message = SimpleNamespace(
        word=POISON,
        timestamp=record.timestamp,
        offset=0,
        topic=lambda: "orders",
        partition=lambda: 0,
        key=lambda: b"k",
        value=lambda: b"v",
        headers=lambda: None,
    )
    owner.stores.process({INPUTS[0]: [message]}, owner.count)
    while owner.stores.waiting:
        owner.stores.process({}, owner.count)
    [bad] = seen
    assert (bad.key, bad.value, bad.headers, bad.place) == (
        b"k",
        b"v",
        (),
        "orders [0], offset 0, task 0_0",
    )
