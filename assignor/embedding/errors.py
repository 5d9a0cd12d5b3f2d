"""Errors of an application that uses the assignor, and which of them are fatal.

```
RebalanceError                 encoding: never raised itself
+ EmbeddingError               a failure outside the assignment itself
  - ClusterUnavailable         the cluster did not answer, or refused, within the deadline
  - StateDirectoryLocked       another process uses this state directory
  - MemberStopped              this member cannot go on; correct the cause, and restart it
    - ChangelogLost            a changelog lacks what a local copy of its store has
    - CopiesKept               local copies of stores are kept for the operator
    - LostPosition             a partition has no offset to begin at, and no reset policy
  - UnreadableRecord           a record cannot be read: deserializer, codec, checksum
  - ListenerFailed             a method of the application's listener has raised in a rebalance
  - StoreNotHeld               a state store whose task is not on this member
  - StoreReadOnly              a write to a state store outside the processing of a record
```
"""

import inspect
import logging
import signal
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType, MappingProxyType
from typing import Final, Self

from encoding import RebalanceError, TopicPartition

LEFT_GROUP: Final = "this member left the group and will not rejoin"
"""Begins the message of a member that has ended; the cause follows."""


class EmbeddingError(RebalanceError):
    """A failure outside the member's metadata and tasks: the cluster, or the state directory."""


class ClusterUnavailable(EmbeddingError):
    """A request to the cluster failed or timed out; the message names the request and the cause."""


class StateDirectoryLocked(EmbeddingError):
    """Another process uses the state directory.

    Attributes:
        path: the directory.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"state directory {path} is used by another process; "
            "stop it, or give each process its own directory"
        )


class MemberStopped(EmbeddingError):
    """The member cannot continue, and a retry would fail; the message says what to do."""


class ChangelogLost(MemberStopped):
    """Changelogs lack what local copies of their stores have.

    Attributes:
        topics: the changelogs.
    """

    def __init__(self, why: str, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        super().__init__(why)

    @classmethod
    def raise_if(cls, errors: Sequence[Self]) -> None:
        """Raise one error for all, with the message of the first; none without any."""
        if errors:
            raise cls(str(errors[0]), frozenset().union(*(error.topics for error in errors)))


class CopiesKept(MemberStopped):
    """Local copies of stores are kept for the operator; see `assignor.embedding.kept`."""


class LostPosition(MemberStopped):
    """A partition cannot be read from where the group is, and `auto_offset_reset` is none.

    Attributes:
        topic, partition: the first such partition.
        offset: the offset that the partition does not have; None: the group has committed none.
    """

    def __init__(self, positions: Mapping[TopicPartition, int | None]) -> None:
        (self.topic, self.partition), self.offset = min(positions.items(), key=lambda item: item[0])
        named = "; ".join(
            f"{topic} [{partition}]: "
            + ("no offset is committed" if at is None else f"offset {at} does not exist")
            for (topic, partition), at in sorted(positions.items(), key=lambda item: item[0])
        )
        super().__init__(
            f"{LEFT_GROUP}: it cannot read on, and auto_offset_reset is none ({named}); set the "
            "offsets of the group, such as with kafka-consumer-groups.sh --reset-offsets, or set "
            "auto_offset_reset to earliest or latest"
        )


class UnreadableRecord(EmbeddingError):
    """A record cannot be read; the cause is the error of its deserializer, codec or checksum.

    The position of its partition is that of the record: the next poll raises again, unless the
    application seeks past it, or, if `on_bad_record` has had it, decides otherwise. Records of
    other partitions are not affected.

    Attributes:
        topic, partition: where the record is.
        offset: of the record, or of the first record of its batch that is not read yet.
    """

    def __init__(
        self, topic: str, partition: int, offset: int, why: str, *, leave_out: str = ""
    ) -> None:
        self.topic, self.partition, self.offset = topic, partition, offset
        leave_out = leave_out or f"seek to offset {offset + 1}"
        super().__init__(
            f"{topic} [{partition}]: the record at offset {offset} cannot be read ({why}); correct "
            f"the deserializer or install the codec, or leave it out: {leave_out}"
        )


class ListenerFailed(EmbeddingError):
    """A method of the listener has raised in a rebalance; the error is the `__cause__`.

    The assignment holds: another loop over the consumer returns records of these partitions.
    """

    def __init__(self, method: str, error: BaseException) -> None:
        super().__init__(
            f"the listener has raised in {method} ({error_text(error)}): what the application needs"
            " for its partitions may be missing; correct the cause, and restart it"
        )


class StoreNotHeld(EmbeddingError):
    """A state store was used whose task is not, or no longer, on this member."""


class StoreReadOnly(EmbeddingError):
    """A state store was written outside the function that processes records of its active task."""


# Class name of Kafka's error in the clients -> what to do about it.
_FATAL = MappingProxyType(
    {
        "FencedInstanceIdError": "another process has joined with this group.instance.id; give "
        "each process its own, then restart this one",
        "GroupAuthorizationFailedError": "this user may not read the group; grant READ on it",
        "GroupMaxSizeReachedError": "the group has as many members as group.max.size allows; raise "
        "it on the brokers, or start fewer members",
        "IllegalSaslStateError": "this listener of the broker has no SASL; correct "
        "security_protocol, or the port",
        "InconsistentGroupProtocolError": "the members of the group have other assignors than this "
        "one, which is named 'stream'; use another group_id, or bring the group to this assignor "
        "with two rolling bounces, the first with its own assignors besides this one, as "
        "fallback_assignors (kafka-python) or partition.assignment.strategy (confluent-kafka; "
        "docs/clients.md); with aiokafka, stop all its members first",
        "InvalidGroupIdError": "the broker rejects this group id; choose another",
        "InvalidSessionTimeoutError": "the broker rejects session_timeout_ms; choose a value "
        "between group.min.session.timeout.ms and group.max.session.timeout.ms",
        "MemberRefused": "start it with a release that supports the group's levels, or lower them; "
        "if its subscription cannot be written, correct what the message names",
        "SaslAuthenticationFailed": "the user name or the password is wrong; correct it",
        "SaslAuthenticationFailedError": "the user name or the password is wrong; correct it",
        "TopicAuthorizationFailedError": "this user has no right to a topic; grant READ on it, "
        "or WRITE if a producer of this application writes it",
        "UnsupportedSaslMechanismError": "the broker has not enabled this sasl_mechanism; give one "
        "that it has",
        "UnsupportedVersionError": "the broker does not support this request; upgrade it, or, if "
        "security_protocol names SASL and this listener has none, correct security_protocol",
    }
)
_FIRST_PAUSE_MS = 100
_LAST_PAUSE_MS = 10_000


def message_of(error: BaseException) -> str:
    """Return the text of an error, also of an application's error whose `__str__` fails."""
    try:
        return str(error)
    except Exception as failed:
        if is_interrupt(failed):
            raise
        return f"its text cannot be read ({type(failed).__name__})"


def error_text(error: BaseException) -> str:
    """Return the kind of an error and its text, the kind once: clients' texts often begin with it.

    >>> error_text(OSError("gone")), error_text(TimeoutError())
    ('OSError: gone', 'TimeoutError')
    """
    kind, text = type(error).__name__, message_of(error)
    if kind in text:
        return text
    return f"{kind}: {text}" if text else kind


def fatal_reason(error: BaseException) -> str | None:
    """Return what to do about a fatal error; None if a retry may succeed.

    Args:
        error: the client's exception; its causes are checked too.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        for kind in type(cause).__mro__:
            if kind.__name__ in _FATAL:
                return _FATAL[kind.__name__]
        cause = cause.__cause__
    return None


def origins_of(
    error: BaseException, handled: BaseException | None = None
) -> Iterator[BaseException]:
    """Yield an error and all that it follows from, each once: causes, contexts, parts of groups.

    Args:
        error: of the application.
        handled: the error, if any, that was being handled when the application was called. Python
            makes it the context of all that is raised then; it is left out, with its origins.
    """
    seen = {id(handled)}
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            parts = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
            left += [*parts, each.__context__, each.__cause__]


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error says nothing of where it was raised: a signal's handler raised it.

    It is no `Exception`, as KeyboardInterrupt, or its traceback has a handler that is installed, or
    a function that was called as a handler is: with the number of a signal, and then the frame in
    which it was called. A function that only has this frame is none.
    """
    if error is None or not isinstance(error, Exception):
        return error is not None
    return is_of_signal(error)


def is_of_signal(error: BaseException) -> bool:
    """Return whether an error is KeyboardInterrupt, or was raised by the handler of a signal."""
    if isinstance(error, KeyboardInterrupt):
        return True
    installed = {getattr(signal.getsignal(n), "__code__", None) for n in signal.valid_signals()}
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(
        frame.f_code in installed or _is_called_by_signal(frame, caller)
        for caller, frame in pairwise(frames)
    )


def _is_called_by_signal(frame: FrameType, caller: FrameType) -> bool:
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount]
    # What a handler has deleted is the number.
    arguments = [values.get(name, signal.SIGTERM) for name in names]
    if code.co_flags & inspect.CO_VARARGS:
        rest = values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        arguments += rest if type(rest) is tuple else ()
    numbers = signal.valid_signals()
    return any(
        after is caller and type(before) in {int, signal.Signals} and before in numbers
        for before, after in pairwise(arguments)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPause:
    """An error after which a retry may succeed: wait `wait_ms`, then poll again.

    Attributes:
        wait_ms: milliseconds.
        why: a sentence.
        is_first: the failures in a row before it, if there are any, were errors of other kinds.
    """

    wait_ms: int
    why: str
    is_first: bool = True

    @property
    def level(self) -> int:
        """Of the line in the log."""
        return logging.WARNING if self.is_first else logging.DEBUG


class PollErrors:
    """Back-off for one consumer's poll: the pause doubles with every failure in a row.

    >>> errors = PollErrors()
    >>> [errors.failed(OSError("gone")).wait_ms for _ in range(3)]
    [100, 200, 400]
    """

    def __init__(self) -> None:
        self._in_a_row = 0
        self._kinds: set[type[BaseException]] = set()

    def succeeded(self) -> int:
        """Reset the pause after a successful poll; return how many have failed before it."""
        failed, self._in_a_row = self._in_a_row, 0
        self._kinds.clear()
        return failed

    def failed(self, error: BaseException) -> ErrorPause:
        """Return how long to wait after a failed poll.

        Raises:
            MemberStopped: the error is fatal; the message says what to do.
        """
        problem = error_text(error)
        todo = fatal_reason(error)
        if todo is not None:
            raise MemberStopped(f"this member cannot go on ({problem}): {todo}") from error
        wait_ms = min(_FIRST_PAUSE_MS << min(self._in_a_row, 10), _LAST_PAUSE_MS)
        self._in_a_row += 1
        is_first = type(error) not in self._kinds
        self._kinds.add(type(error))
        why = f"poll failed ({problem}); retry in {wait_ms} ms"
        return ErrorPause(wait_ms=wait_ms, why=why, is_first=is_first)
