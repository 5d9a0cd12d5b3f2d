"""A batch processed into state stores and committed, and what an error means for the loop."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from assignor.embedding import (
    ClusterUnavailable,
    Handler,
    MemberStopped,
    PollErrors,
    TaskState,
    TaskStores,
)
from assignor.logs import line_logger

_log = line_logger(__name__)

# The member has to poll at least once a session.
_LONGEST_PAUSE_S: Final = 1.0


class BatchProcessing:
    """Processes the batches of one poll loop.

    Args:
        stores: the state of the member's tasks.
        handle: called with each record and the stores of its task.
        commit: called with client's partition -> offset to commit.
        ended: ends a pause when set.
        leave: called before the member ends with `MemberStopped`.
        transient: errors of the client after which records are kept and tried again, besides
            `ClusterUnavailable`, if they do not end the member; not those that `handle` raises.
    """

    def __init__(
        self,
        stores: TaskStores,
        handle: Handler,
        commit: Callable[[Mapping[Any, int]], object],
        *,
        ended: threading.Event,
        leave: Callable[[], object] = lambda: None,
        transient: tuple[type[Exception], ...] = (),
    ) -> None:
        self._stores = stores
        self._handle = handle
        self._commit = commit
        self._ended = ended
        self._leave = leave
        self._transient: tuple[type[Exception], ...] = (ClusterUnavailable, *transient)
        self._errors = PollErrors()
        self._handler_error: Exception | None = None

    def process(self, batch: Mapping[Any, Sequence[Any]]) -> None:
        """Process and commit a batch; after an error that may pass, wait a moment.

        Raises:
            MemberStopped: the member cannot go on; it has left.
            StoreError: a store cannot be used.
            Exception: of the function that processes records, also one of a client of its own.
        """
        try:
            self._commit(self._stores.process(batch, self._run_handle))
        except MemberStopped:
            self._leave()
            raise
        except self._transient as error:
            if error is self._handler_error:
                raise
            self._wait(error)
        else:
            self._errors.succeeded()

    def _run_handle(self, record: Any, state: TaskState) -> object:
        try:
            return self._handle(record, state)
        except ClusterUnavailable:  # of a changelog or an output
            raise
        except Exception as error:
            self._handler_error = error
            raise

    def _wait(self, error: Exception) -> None:
        try:
            pause = self._errors.failed(error)
        except MemberStopped:
            self._leave()
            raise
        _log.warning("records are kept, and processed later: %s", error)
        self._ended.wait(min(pause.wait_ms / 1000, _LONGEST_PAUSE_S))
