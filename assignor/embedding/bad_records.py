"""Records that cannot be processed: the member fails, skips them, or writes dead letters.

Kafka Streams has an exception handler for each of the three stages (KIP-161, KIP-1033, KIP-210) and
dead letters (KIP-1034); here one function gets the stage with the record.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from assignor.config import refused
from assignor.embedding.errors import (
    ClusterUnavailable,
    MemberStopped,
    UnreadableRecord,
    error_text,
    is_interrupt,
    is_of_signal,
    message_of,
    origins_of,
)
from assignor.errors import ConfigError
from assignor.logs import line_logger
from assignor.stores import OutputTooLarge, RecordTooLarge, StoreError
from assignor.topology import is_topic_name
from encoding import TaskId, shown

_log = line_logger(__name__)

_TEXT_LIMIT: Final = 16 << 10
_HEADER: Final = "__streams.errors."
# What says nothing of the record: a store that is broken, or memory that is used up. Neither does
# an error that an application raises instead: to pass over its record would lose it.
_OF_NO_RECORD: Final = (ClusterUnavailable, MemberStopped, MemoryError, StoreError)


class BadRecordStage(Enum):
    """What could not be done with a record."""

    DESERIALIZATION = "deserialization"
    PROCESSING = "processing"
    PRODUCTION = "production"


class BadRecordAction(Enum):
    """What becomes of a record that cannot be processed."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The record is written to a topic, which exists, and skipped.

    It gets the key, value, timestamp and headers of the record, and the headers of KIP-1034, such
    as `__streams.errors.exception`.

    Attributes:
        topic: its name.

    Raises:
        ConfigError: no topic can have this name.
    """

    topic: str

    def __post_init__(self) -> None:
        """Check the name."""
        if not isinstance(self.topic, str) or not is_topic_name(self.topic):
            raise refused("topic", self.topic, "the name of the topic for dead letters")


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that cannot be processed.

    Attributes:
        stage: what could not be done with it.
        task: that reads it.
        topic, partition, offset: where it is.
        timestamp_ms: of the record, in ms since 1970; None: it has none.
        key, value: as they were read; bytes or None, unless the client has deserializers.
        headers: names and values.
        error: what the deserializer, the function or the client raised.
    """

    stage: BadRecordStage
    task: TaskId
    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    error: Exception

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.topic} [{self.partition}], offset {self.offset}, task {self.task}"


Action = BadRecordAction | DeadLetter
OnBadRecord = Action | Callable[[BadRecord], Action]
"""What becomes of all bad records, or a function that says it for each."""

Send = Callable[..., None]
"""Begins to write a record: topic, key, value, partition; headers and timestamp_ms by name."""


class BadRecords:
    """Decides about bad records, and counts those that are not processed.

    Args:
        given: the decision of the application.
        inputs: topics that it reads, and so writes no dead letters to.

    Attributes:
        counts: (stage, "skip" or "dead letter") -> number of records.

    Raises:
        ConfigError: `given` is no such decision, or writes to an input.
    """

    def __init__(self, given: OnBadRecord, inputs: Collection[str]) -> None:
        value: object = given
        if not isinstance(value, Action) and not callable(value):
            wanted = "a BadRecordAction, DeadLetter(TOPIC), or a function that returns one"
            raise refused("on_bad_record", value, wanted)
        self._given = given
        self._inputs = inputs
        self._check_no_input(given)
        self.counts: Counter[tuple[BadRecordStage, str]] = Counter()

    @property
    def always_fails(self) -> bool:
        """Whether no record is ever skipped."""
        return self._given is BadRecordAction.FAIL

    def failure(
        self,
        task: TaskId,
        record: Any,
        error: Exception,
        send: Send,
        handled: BaseException | None = None,
    ) -> Exception | None:
        """Return what to raise for a record; None: it counts as processed.

        Args:
            task: that reads it.
            record: of any client.
            error: what was raised for it; it gets a note that names the record. If it takes no
                note, or is the end of an iterator or a cancellation, a RuntimeError with this
                cause is to be raised.
            send: writes the dead letter, which is to be acknowledged before anything is committed.
            handled: what was being handled when the application was called, as in `origins_of`.

        Raises:
            RuntimeError: the application's function has raised; the error is its context.
            TypeError: it returned no action; or a dead letter is no bytes.
            ConfigError: the topic of a dead letter is an input.
        """
        if is_interrupt(error):
            return error
        origin = next(filter(_is_of_no_record, origins_of(error, handled)), None)
        if origin is error:
            return error
        bad = _bad_record(task, record, error)
        action = self._decision(bad) if origin is None else BadRecordAction.FAIL
        if action is BadRecordAction.FAIL:
            what = "the function that processes records has raised "
            what = what if bad.stage is BadRecordStage.PROCESSING else f"{bad.stage.value} failed: "
            why = "" if origin is None else f"; not of this record, but of {error_text(origin)}"
            _log.error("%s: %s%s%s", bad.place, what, error_text(error), why)
            return _noted(error, bad.place)
        if isinstance(action, DeadLetter):
            _send(action, bad, send)
            done = f"is written to {action.topic}, and skipped"
        elif action is BadRecordAction.SKIP:
            done = "is skipped"
        else:
            raise TypeError(
                f"on_bad_record returned {shown(repr(action))}; return BadRecordAction.FAIL or "
                "SKIP, or DeadLetter(TOPIC)"
            )
        kind = "dead letter" if isinstance(action, DeadLetter) else "skip"
        self.counts[bad.stage, kind] += 1
        _log.warning(
            "%s: the record %s: %s failed: %s",
            bad.place,
            done,
            bad.stage.value,
            shown(error_text(bad.error), limit=_TEXT_LIMIT),
        )
        return None

    def _check_no_input(self, given: object) -> None:
        if isinstance(given, DeadLetter) and given.topic in self._inputs:
            what = f"{given.topic} is an input: the record would fail again, without end"
            raise ConfigError(f"on_bad_record={shown(repr(given))}: {what}; name another topic")

    def _decision(self, bad: BadRecord) -> Action:
        if isinstance(self._given, Action):
            return self._given
        try:
            action = self._given(bad)
        except Exception as error:
            if is_interrupt(error):
                raise
            # Its own error might be one of the client, after which a loop tries again.
            why = f"on_bad_record has raised {error_text(error)} for {bad.place}"
            raise RuntimeError(why) from error
        self._check_no_input(action)
        return action


def _is_of_no_record(error: BaseException) -> bool:
    if isinstance(error, OutputTooLarge | RecordTooLarge):
        return False
    return isinstance(error, _OF_NO_RECORD) or is_of_signal(error)


def _noted(error: Exception, place: str) -> Exception:
    """Return an error with a note, or, if it cannot be raised as it is, another one from it.

    A generator replaces the end of an iterator (PEP 479); a coroutine that awaits a thread takes
    `CancelledError` for its own cancellation; a frozen dataclass takes no note, and no traceback in
    a context manager.
    """
    if not isinstance(error, StopIteration | StopAsyncIteration | CancelledError):
        try:
            error.add_note(place)
        except Exception as failed:
            if is_interrupt(failed):
                raise
        else:
            return error
    why = f"{place}: the function that processes records has raised {error_text(error)}"
    wrapped = RuntimeError(why)
    wrapped.__cause__ = error
    return wrapped


def value_of(record: Any, name: str) -> Any:
    """Return an attribute of a record of any client; "?" without one."""
    value = getattr(record, name, "?")
    return value() if callable(value) else value


def time_of(record: Any) -> int:
    """Return the timestamp of a record of any client, in ms; -1: it has none."""
    time_ms = record.timestamp
    found = time_ms()[1] if callable(time_ms) else time_ms
    return -1 if found is None else int(found)  # message format v0 has no times


def _bad_record(task: TaskId, record: Any, error: Exception) -> BadRecord:
    stage = BadRecordStage.PROCESSING
    if isinstance(error, OutputTooLarge | RecordTooLarge):
        stage = BadRecordStage.PRODUCTION
    elif isinstance(error, UnreadableRecord):
        stage = BadRecordStage.DESERIALIZATION
        error = error.__cause__ if isinstance(error.__cause__, Exception) else error
    headers, time_ms = value_of(record, "headers"), time_of(record)
    return BadRecord(
        stage=stage,
        task=task,
        topic=value_of(record, "topic"),
        partition=value_of(record, "partition"),
        offset=value_of(record, "offset"),
        timestamp_ms=None if time_ms < 0 else time_ms,
        key=value_of(record, "key"),
        value=value_of(record, "value"),
        headers=() if headers in (None, "?") else tuple((name, value) for name, value in headers),
        error=error,
    )


def _send(letter: DeadLetter, bad: BadRecord, send: Send) -> None:
    wrong = [n for n in ("key", "value") if not isinstance(getattr(bad, n), bytes | None)]
    if wrong:
        raise TypeError(
            f"{bad.place}: the {wrong[0]} is no bytes, so the record cannot be written to "
            f"{letter.topic} as it was; give deserializers to StreamsApplication, or deserialize "
            "in the function that processes records"
        ) from bad.error
    error = bad.error
    stack = "".join(traceback.format_exception(error))
    own = {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": message_of(error),
        "stacktrace": stack,
        "topic": bad.topic,
        "partition": str(bad.partition),
        "offset": str(bad.offset),
    }
    added = [
        (_HEADER + name, text[:_TEXT_LIMIT].encode("utf-8", "backslashreplace"))
        for name, text in own.items()
    ]
    # kafka-python writes no header of null, and no record with neither key nor value.
    headers = [(name, value or b"") for name, value in _merged(bad.headers, added)]
    value = b"" if bad.key is None and bad.value is None else bad.value
    send(letter.topic, bad.key, value, None, headers=headers, timestamp_ms=bad.timestamp_ms)


def _merged(
    headers: Sequence[tuple[str, bytes | None]], added: Sequence[tuple[str, bytes | None]]
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a dead letter; of one that fails again, the last error counts."""
    names = {name for name, _ in added}
    return [*((name, value) for name, value in headers if name not in names), *added]
