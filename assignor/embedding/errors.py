"""What can go wrong around the assignor.

```
RebalanceError                 encoding: never raised itself
+ EmbeddingError               the surroundings of a member
  - ClusterUnavailable         the cluster did not answer, or refused, within the deadline
  - StateDirectoryLocked       another process works in this state directory
  - MemberStopped              this member is out of the group for good; restarting is up to you
```
"""

from dataclasses import dataclass
from types import MappingProxyType

from encoding import RebalanceError


class EmbeddingError(RebalanceError):
    """Something around the member, not its bytes or tasks, is wrong."""


class ClusterUnavailable(EmbeddingError):
    """The cluster did not do what was asked within the deadline; the message says what and why."""


class StateDirectoryLocked(EmbeddingError):
    """Another process holds the state directory.

    Attributes:
        path: the directory.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"state directory {path} is used by another process; "
            "stop it, or give each process a directory of its own"
        )


class MemberStopped(EmbeddingError):
    """The member cannot go on, and trying again would not help; the message says what would."""


# Kafka's error, by the clients' class name -> what to do about it.
_FATAL = MappingProxyType(
    {
        "FencedInstanceIdError": "another process runs with this group.instance.id and took over; "
        "give each process one of its own, and start this one again",
        "GroupAuthorizationFailedError": "this user may not read the group; grant READ on it",
        "GroupMaxSizeReachedError": "the group has as many members as group.max.size allows; raise "
        "it on the brokers, or start fewer members",
        "InconsistentGroupProtocolError": "no assignor name is common to all members of the group; "
        "give every member the same assignors, or use another group id",
        "InvalidGroupIdError": "the broker takes no such group id; choose another",
        "InvalidSessionTimeoutError": "the broker refuses session_timeout_ms; keep it between "
        "group.min.session.timeout.ms and group.max.session.timeout.ms",
        "MemberRefused": "start it with a release that supports the group's levels, or lower them",
        "SaslAuthenticationFailed": "user name or password are wrong; correct them",
        "SaslAuthenticationFailedError": "user name or password are wrong; correct them",
        "TopicAuthorizationFailedError": "this user may not read a topic; grant READ on it",
        "UnsupportedVersionError": "the broker is too old for what was asked; upgrade it",
    }
)
_FIRST_PAUSE_MS = 100
_LAST_PAUSE_MS = 10_000


def fatal_reason(error: BaseException) -> str | None:
    """What to do about an error that ends the member, or None when it may pass.

    Args:
        error: as the client raised it; its causes count too.
    """
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        for kind in type(one).__mro__:
            if kind.__name__ in _FATAL:
                return _FATAL[kind.__name__]
        one = one.__cause__
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPause:
    """An error that may pass: wait, then poll again. `why` is one sentence."""

    wait_ms: int
    why: str


class PollErrors:
    """Errors of one consumer's poll: pauses double while they go on, and a good poll forgets them.

    >>> errors = PollErrors()
    >>> [errors.failed(OSError("gone")).wait_ms for _ in range(3)]
    [100, 200, 400]
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def succeeded(self) -> None:
        """A poll came back."""
        self._in_a_row = 0

    def failed(self, error: BaseException) -> ErrorPause:
        """How long to wait after an error.

        Raises:
            MemberStopped: this error comes again at every poll; the message says what to do.
        """
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        todo = fatal_reason(error)
        if todo is not None:
            raise MemberStopped(f"this member left the group for good ({said}): {todo}") from error
        wait_ms = min(_FIRST_PAUSE_MS << min(self._in_a_row, 10), _LAST_PAUSE_MS)
        self._in_a_row += 1
        return ErrorPause(wait_ms=wait_ms, why=f"poll failed ({said}); again in {wait_ms} ms")
