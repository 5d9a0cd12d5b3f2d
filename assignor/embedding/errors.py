"""What can go wrong around the assignor.

```
RebalanceError                 encoding: never raised itself
+ EmbeddingError               the surroundings of a member
  - ClusterUnavailable         the cluster did not answer, or refused, within the deadline
  - StateDirectoryLocked       another process works in this state directory
  - MemberStopped              this member is out of the group for good; restarting is up to you
```
"""

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
