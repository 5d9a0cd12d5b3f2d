"""Bad records that are written to a topic: with what, when, and how often."""

from contextlib import suppress

import pytest

from assignor import ConfigError, DeadLetter
from assignor.stores import OutputTooLarge
from tests.assignor.embedding.state_stores.bad_records.poison import (
    DEAD,
    POISON,
    fill,
    letters_of,
    poisoned,
    without_poison,
)
from tests.assignor.embedding.state_stores.logs import (
    INPUTS,
    Cluster,
    Killed,
    Member,
    Steps,
    restored,
)


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


def test_a_dead_letter_into_an_input_is_refused_for_each_record_too(cluster, member):
    owner = member(on_bad_record=lambda _: DeadLetter(INPUTS[0].topic))
    poisoned(owner)
    owner.assign()
    with pytest.raises(ConfigError, match="is an input: the record would fail"):
        owner.finish()
    assert not [sent for sent in cluster.outputs if sent[0] == INPUTS[0].topic]


@pytest.mark.parametrize("topic", ["", "a b", None])
def test_a_topic_of_dead_letters_has_a_name(topic):
    with pytest.raises(ConfigError, match="dead letters"):
        DeadLetter(topic)
