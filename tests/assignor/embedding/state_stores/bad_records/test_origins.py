"""Errors of an application that follow from others, and errors that are hard to raise or write."""

import asyncio
import concurrent.futures
import signal
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from unittest.mock import Mock

import pytest

from assignor import BadRecordStage
from assignor.embedding import ClusterUnavailable, MemberStopped
from assignor.embedding.errors import origins_of
from assignor.stores import OutputTooLarge, StoreError
from encoding import RebalanceError
from tests.assignor.embedding.state_stores.bad_records.poison import (
    DEAD,
    FAIL,
    SKIP,
    letters_of,
    poisoned,
    without_poison,
)
from tests.assignor.embedding.state_stores.logs import restored


def of(origin):
    raise ValueError("not written") from origin


def of_context(origin):
    with replacing():
        raise origin


def of_hidden(origin):
    try:
        of_context(origin)
    except ValueError as error:
        raise error from None


@contextmanager
def replacing():
    try:
        yield
    finally:
        raise ValueError("not written")


def of_group(origin):
    raise ExceptionGroup("of a group", [KeyError(), ExceptionGroup("inner", [error_of(origin)])])


def of_far(origin):
    first, second = KeyError("first"), KeyError("second")
    first.__cause__, second.__context__, origin.__context__ = second, origin, first
    raise ValueError("not written") from first


def error_of(origin):
    try:
        of(origin)
    except ValueError as error:
        return error


def of_signal(origin):
    """A handler of a signal raises; the function raises another error from it."""

    def end(number, frame):
        raise origin

    try:
        end(signal.SIGUSR1, sys._getframe())
    except type(origin) as error:
        raise ValueError("not written") from error


ORIGINS = [
    ClusterUnavailable("no broker"),
    StoreError("no disk"),
    MemberStopped("fenced"),
    MemoryError("full"),
    KeyboardInterrupt(),
]


KINDS = [of, of_context, of_hidden, of_group, of_far]


@pytest.mark.parametrize(
    ("follows", "origin"),
    [*product(KINDS, ORIGINS), (of_signal, RuntimeError("to end")), (of_signal, SystemExit())],
)
def test_no_record_is_lost_by_what_is_not_its_own_error(cluster, member, follows, origin, caplog):
    owner = member(on_bad_record=SKIP)
    count = owner.count

    def failing(record, state):
        if record.offset == 1:
            follows(origin)
        count(record, state)

    owner.count = failing
    owner.assign()
    with pytest.raises((ValueError, ExceptionGroup)) as raised:
        owner.finish()
    assert owner.stores.work.bad_records == {}
    assert raised.value.__notes__ == ["orders [0], offset 1, task 0_0"]
    assert f"not of this record, but of {type(origin).__name__}" in caplog.text
    owner.count = count
    owner.finish()
    assert cluster.committed == {each: len(rows) for each, rows in cluster.input.items()}
    words = restored(cluster)["by-word"]
    assert sum(words.values()) == sum(len(rows) for rows in cluster.input.values())


def swallowing(_):
    """Return as if nothing had happened."""


@pytest.mark.parametrize("follows", [*KINDS, swallowing])
@pytest.mark.parametrize("error", [ClusterUnavailable("no broker"), OutputTooLarge("too large")])
@pytest.mark.parametrize("action", [FAIL, SKIP])
def test_an_error_of_an_output_decides_about_its_record(cluster, member, follows, error, action):
    owner = member(on_bad_record=action)
    send, count = owner.access.send, owner.count
    owner.access.send = Mock(side_effect=[None, error, *[None] * 99], wraps=send)

    def handle(record, state):
        try:
            count(record, state)
        except RebalanceError as failed:
            follows(failed)

    owner.count = handle
    owner.assign()
    is_skipped = action is SKIP and isinstance(error, OutputTooLarge)
    with nullcontext() if is_skipped else pytest.raises(type(error)):
        owner.finish()
    assert owner.stores.work.bad_records.total() == is_skipped
    owner.finish()
    records = sum(len(rows) for rows in cluster.input.values())
    assert sum(restored(cluster)["by-word"].values()) == records - is_skipped
    assert owner.access.send.call_count == records + 1 - is_skipped


def test_what_was_handled_when_a_loop_began_is_no_origin(cluster, member):
    """`except ClusterUnavailable: app.run()` makes it the context of all later errors."""
    owner = member(on_bad_record=SKIP)
    poisoned(owner)
    owner.assign()
    with pytest.raises(ClusterUnavailable), finishing(owner):
        raise ClusterUnavailable("before")
    assert owner.state() == restored(cluster) == without_poison(cluster)


@contextmanager
def finishing(owner):
    try:
        yield
    finally:
        owner.finish()


def test_origins_of_an_error_are_found_once_each():
    first, second = KeyError(), KeyError()
    first.__cause__ = first.__context__ = second
    second.__context__ = first
    group = BaseExceptionGroup("both", [first, second, KeyboardInterrupt()])
    assert len([*origins_of(group)]) == 4
    assert [*origins_of(first, second)] == [first]


@dataclass(frozen=True)
class Frozen(Exception):
    why: str


class TextFails(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class TextIsNone(Exception):
    def __str__(self):
        return None  # noqa: PLE0307 as applications do


class NotesAreText(Exception):
    __notes__ = "a text"


ODD = [Frozen("x"), TextFails(), TextIsNone(), NotesAreText(), StopIteration("end")]
CANCELLED = [concurrent.futures.CancelledError("a"), asyncio.CancelledError("b")]
ODD += [StopAsyncIteration(), *CANCELLED]


@contextmanager
def context():
    yield


def finish(owner):
    """Process as loops do: in a generator, and in a context manager."""
    with context():
        owner.finish()
    yield


@pytest.mark.parametrize("error", ODD, ids=lambda each: type(each).__name__)
def test_every_error_of_an_application_comes_out_with_its_record(cluster, member, error, caplog):
    owner = member(on_bad_record=FAIL)
    poisoned(owner, error)
    owner.assign()
    with pytest.raises((type(error), RuntimeError)) as raised:
        next(finish(owner))
    out = raised.value
    assert error in origins_of(out)
    place = "orders [0], offset 1, task 0_0"
    assert place in str(out) if out is not error else out.__notes__ == [place]
    assert f"{place}: the function that processes records has raised " in caplog.text
    assert type(error).__name__ in caplog.text


@pytest.mark.parametrize("error", CANCELLED, ids=str)
def test_a_cancellation_of_the_application_does_not_look_like_one_of_the_loop(member, error):
    owner = member(on_bad_record=FAIL)
    poisoned(owner, error)
    owner.assign()
    with pytest.raises(RuntimeError, match=r"orders \[0\], offset 1, .* has raised CancelledError"):
        owner.finish()


@pytest.mark.parametrize("action", [SKIP, DEAD])
@pytest.mark.parametrize("error", ODD, ids=lambda each: type(each).__name__)
def test_every_error_of_an_application_can_be_passed_over(cluster, member, error, action):
    owner = member(on_bad_record=action)
    poisoned(owner, error)
    owner.assign()
    owner.finish()
    assert owner.state() == restored(cluster) == without_poison(cluster)
    kind = "dead letter" if action is DEAD else "skip"
    assert owner.stores.work.bad_records == {(BadRecordStage.PROCESSING, kind): 2}
    assert len(letters_of(cluster)) == (2 if action is DEAD else 0)
