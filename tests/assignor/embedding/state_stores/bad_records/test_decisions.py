"""Records that cannot be processed: what fails, what is skipped, and what is no bad record."""

import signal
import traceback
from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from assignor import BadRecordStage, ConfigError
from assignor.embedding import ClusterUnavailable
from assignor.embedding.bad_records import BadRecords
from assignor.embedding.state_stores.records import COMMIT_KEY
from assignor.embedding.state_stores.writing import COMMIT_SIZE
from assignor.stores import OutputTooLarge, RecordTooLarge, StoreError
from tests.assignor.embedding.state_stores.bad_records.poison import (
    DEAD,
    FAIL,
    POISON,
    SKIP,
    letters_of,
    poisoned,
    without_poison,
)
from tests.assignor.embedding.state_stores.logs import (
    INPUTS,
    restored,
)


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


@pytest.mark.parametrize("action", [FAIL, lambda _: {}["no decision"]])
def test_an_error_keeps_what_it_follows_from(cluster, member, action):
    """A traceback shows the first error of the record, whatever was raised after it."""
    owner = member(on_bad_record=action)
    first = KeyError("amount")

    def handle(record, state):
        try:
            raise first
        except KeyError:
            raise ValueError("not understood")  # noqa: B904 as many functions do

    owner.count = handle
    owner.assign()
    with pytest.raises((ValueError, RuntimeError)) as raised:
        owner.finish()
    assert "KeyError: 'amount'" in "".join(traceback.format_exception(raised.value))


def test_a_decision_is_part_of_the_time_of_its_record(cluster, member):
    """Health names a record whose function, or decision, takes too long."""
    seen = []
    owner = member(on_bad_record=lambda _: seen.append(owner.stores.work.current[:2]) or SKIP)
    poisoned(owner)
    owner.assign()
    owner.finish()
    assert seen == [(INPUTS[0], 1), (INPUTS[0], 2)]
    assert owner.stores.work.current is None


def test_the_topic_of_a_fixed_decision_is_checked_once(cluster, member, monkeypatch):
    checked, check = [], BadRecords._check_no_input
    monkeypatch.setattr(
        BadRecords, "_check_no_input", lambda bad, given: checked.append(given) or check(bad, given)
    )
    owner = member(on_bad_record=DEAD)
    poisoned(owner)
    owner.assign()
    owner.finish()
    assert (checked, len(letters_of(cluster))) == ([DEAD], 2)


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
    assert owner.stores._processing._refused == {}  # another record may come to its offset
    assert owner.state() == restored(cluster) == without_poison(cluster)
    assert owner.stores.work.bad_records == {(BadRecordStage.PRODUCTION, "skip"): 2}


@pytest.mark.parametrize("given", ["skip", None, 1, SimpleNamespace()])
def test_what_is_no_decision_is_refused(member, given):
    with pytest.raises(ConfigError, match="on_bad_record"):
        member(on_bad_record=given)


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
