"""Worker processes that end with the process that started them, however it ends.

The parent holds the write end of a pipe. A thread of each worker waits for the end of this pipe and
ends the process then, also while it is busy. Workers ignore SIGINT: the parent ends them.
"""

import errno
import gc
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_all_start_methods, get_context, resource_tracker
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final, TypeVar

_GARBAGE: Final = 50_000
_END_S: Final = 5.0
_TICK_S: Final = 1.0
_AHEAD: Final = 16  # jobs under way for each worker: one may take longer than many others
# Both ends of the pipe of this process, once it has started a worker; a forked process closes them.
_LIFELINE: Final[list[Connection]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIFELINE.clear)
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class WorkerLostError(ChildProcessError):
    """A worker process ended early; the message says which, and what to do."""


def can_fork() -> bool:
    """Return whether this process may be forked: the platform can, and it has no other thread."""
    return "fork" in get_all_start_methods() and threading.active_count() == 1


class Worker:
    """A worker process, started by `start_workers`.

    Attributes:
        connection: this end of the connection to it, for `multiprocessing.connection.wait`.
    """

    def __init__(self, connection: Connection, process: Any, name: str) -> None:
        self.connection = connection
        self._process, self._name = process, name

    def send(self, message: object) -> None:
        """Send a message, or raise `WorkerLostError`."""
        with self._loss_reported():
            self.connection.send(message)

    def receive(self) -> Any:
        """Wait for a message and return it, or raise `WorkerLostError`."""
        with self._loss_reported():
            return self.connection.recv()

    def kill(self) -> None:
        """End the process, also while another thread waits for its messages."""
        self._process.kill()
        self._process.join()

    @contextmanager
    def _loss_reported(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError) as error:
            self._process.join(_END_S)
            raise WorkerLostError(
                f"worker process {self._name} ended early with status {self._process.exitcode};"
                " if memory ran out, run fewer processes at the same time"
            ) from error


def start_workers(
    serve: Callable[..., object], arguments: Sequence[Sequence[object]]
) -> list[Worker]:
    """Start worker processes, forked if possible.

    Args:
        serve: runs in each process, with its end of the connection; it may raise EOFError or
            OSError when the connection is closed.
        arguments: of each process, further arguments of `serve`.

    Raises:
        ChildProcessError: this process has no file descriptors left.
    """
    method = "fork" if can_fork() else "spawn"
    context: Any = get_context(method)
    workers: list[Worker] = []
    with _failed_start_reported(workers, len(arguments)), _interrupts_blocked():
        if method == "spawn":
            resource_tracker.ensure_running()  # it unblocks SIGINT
        if not _LIFELINE:
            _LIFELINE.extend(context.Pipe(duplex=False))
        for number, more in enumerate(arguments, 1):
            own_end, worker_end = context.Pipe()
            process = context.Process(
                target=_work, args=(_LIFELINE[0], worker_end, serve, more), daemon=True
            )
            process.start()
            worker_end.close()
            workers.append(Worker(own_end, process, f"{number} of {len(arguments)}"))
    return workers


@contextmanager
def _failed_start_reported(workers: Sequence[Worker], count: int) -> Iterator[None]:
    """Provide a block that starts workers; those that it has started end if it fails."""
    try:
        yield
    except OSError as error:
        for worker in workers:
            worker.kill()
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise ChildProcessError(
            f"this process has no file descriptors left for {count} worker processes; raise its"
            " limit (ulimit -n), or run fewer processes at the same time"
        ) from error


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Provide a block whose child processes have SIGINT blocked."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    lifeline: Connection,
    connection: Connection,
    serve: Callable[..., object],
    arguments: Sequence[object],
) -> None:
    """Be a worker."""
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # imported modules stay
    first, *others = gc.get_threshold()
    gc.set_threshold(max(first, _GARBAGE), *others)
    with suppress(EOFError, OSError):
        serve(connection, *arguments)


def _end_with_parent(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


@contextmanager
def worker_pool(count: int) -> Iterator[Callable[..., Future[Any]]]:
    """Provide worker processes that call functions; they end with the block.

    Yields:
        A function like `Executor.submit`, for functions, arguments and results that can be pickled.
        If a process ends early, the results of its calls are a `WorkerLostError`.
    """
    workers = start_workers(_serve_calls, [()] * count)
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)
    threads = ThreadPoolExecutor(count)

    def call(function: Callable[..., Any], *arguments: object) -> Any:
        worker = idle.get()  # there are as many workers as threads
        try:
            worker.send((function, arguments))
            result, error = worker.receive()
        finally:
            idle.put(worker)
        if error is not None:
            raise error
        return result

    try:
        yield lambda function, *arguments: threads.submit(call, function, *arguments)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
        threads.shutdown()


def _serve_calls(connection: Connection) -> None:
    """Call functions in a worker."""
    while True:
        function, arguments = connection.recv()
        result = error = None
        try:
            result = function(*arguments)
        except Exception as raised:  # noqa: BLE001 the parent raises it
            raised.add_note(f"in a worker process:\n{traceback.format_exc()}")
            error = raised
        connection.send((result, error))


def results_of(
    run: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    *,
    workers: int | None,
    tick: Callable[[], object] = lambda: None,
) -> Iterator[_Result]:
    """Run jobs in several processes; yield their results in order.

    Args:
        run: a function that can be pickled.
        jobs: its arguments.
        workers: number of processes; default: one per core. 1: run in this process.
        tick: called every second in which the next result is not there.

    Raises:
        WorkerLostError: a process ended early.
    """
    count = min(workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        with rare_garbage():
            yield from map(run, jobs)
        return
    waiting, under_way = iter(jobs), deque[Future[_Result]]()
    with worker_pool(count) as submit:
        while True:
            for job in islice(waiting, _AHEAD * count - len(under_way)):
                under_way.append(submit(run, job))
            if not under_way:
                return
            while not wait([under_way[0]], timeout=_TICK_S).done:
                tick()
            yield under_way.popleft().result()


@contextmanager
def rare_garbage(objects: int = _GARBAGE) -> Iterator[None]:
    """Provide a block in which the garbage collector runs rarely.

    Args:
        objects: number of new objects between two collections of the youngest generation.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(objects, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
