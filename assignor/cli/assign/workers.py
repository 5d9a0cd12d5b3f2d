"""Answer the lines of a problem file in several processes, in order and in bounded memory.

A thread reads the lines and hands what each read completes to a worker process; so an open stream
is answered while it is open. Few such blocks are under way at a time. The command prints their
answers in the order of the lines.

Lines that follow one another with the same name are rebalances of one group: a leader remembers the
lags between them (`LagMemory`). A worker starts a block without such a memory. If the block begins
with the name that the block before it ended with, these first lines are answered again here.
"""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import IO

from assignor.cli.assign.answers import Answer, Assigner, Options, rare_collections
from assignor.cli.assign.lines import line_blocks
from assignor.cli.toolkit.exit_status import EnvironmentFailed
from assignor.problems import LagMemory
from assignor.workers import WorkerLostError, worker_pool

# Blocks under way for each worker: one that it works on, one that waits.
_AHEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Lines that are answered together, and the number of the first."""

    first: int
    lines: list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """The answers to a block, and the lags after its last line."""

    answers: list[Answer]
    memory: LagMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A block under way; or, without answers, the end of the input or the error that ended it."""

    block: _Block = _Block(first=0, lines=[])
    answers: Future[_Answers] | None = None
    error: Exception | None = None


def answers_of_workers(
    stream: IO[bytes], options: Options, count: int
) -> Generator[Answer, None, None]:
    """Yield the answers to all lines, in order.

    Args:
        stream: the problems.
        options: how they are answered.
        count: number of processes.

    Raises:
        BadInput: a line is too long; the lines before it have been answered.
        EnvironmentFailed: a worker process ended early; the lines before it have been answered.
    """
    with rare_collections(), worker_pool(count) as submit:
        waiting: SimpleQueue[_Waiting] = SimpleQueue()
        slots = threading.Semaphore(count * _AHEAD)
        submitting = partial(_submit_all, stream, options, submit, slots, waiting)
        threading.Thread(target=submitting, daemon=True).start()
        assigner, memory = Assigner(options), LagMemory()
        while (given := waiting.get()).answers is not None:
            answered = _result(given.answers, given.block)
            slots.release()
            answers, memory = _in_sequence(assigner, given.block, answered, memory)
            yield from answers
        if given.error is not None:
            raise given.error


def _submit_all(
    stream: IO[bytes],
    options: Options,
    submit: Callable[..., "Future[_Answers]"],
    slots: threading.Semaphore,
    waiting: "SimpleQueue[_Waiting]",
) -> None:
    """Hand the blocks of a stream to the workers, each when a slot is free; then the end."""
    number = 1
    error: Exception | None = None
    try:
        for lines in line_blocks(stream):
            slots.acquire()
            block = _Block(first=number, lines=lines)
            answers = submit(_answer_block, options, block)
            waiting.put(_Waiting(block=block, answers=answers))
            number += len(lines)
    except Exception as raised:  # noqa: BLE001 the thread that waits raises it
        error = raised
    waiting.put(_Waiting(error=error))


def _answer_block(options: Options, block: _Block) -> _Answers:
    """Answer a block in a worker."""
    assigner, memory = Assigner(options), LagMemory()
    numbered = enumerate(block.lines, start=block.first)
    answers = [assigner.answer(number, line, memory) for number, line in numbered]
    return _Answers(answers=answers, memory=memory)


def _result(answers: Future[_Answers], block: _Block) -> _Answers:
    try:
        return answers.result()
    except WorkerLostError:
        raise EnvironmentFailed(
            f"a worker process ended early, at line {block.first} or behind it (killed, or out of "
            "memory?); use fewer --workers"
        ) from None


def _in_sequence(
    assigner: Assigner, block: _Block, answered: _Answers, memory: LagMemory
) -> tuple[list[Answer], LagMemory]:
    """Return the answers to a block that follows others, and the lags after it.

    Args:
        assigner: answers the first lines again, if they continue the group before the block.
        block: the lines.
        answered: their answers without the lines before.
        memory: the lags before the block.
    """
    answers = list(answered.answers)
    for index, answer in enumerate(answers):
        if answer.name is None:  # not read: the lags do not count
            continue
        if not answer.name or answer.name != memory.name:
            return answers, answered.memory
        answers[index] = assigner.answer(block.first + index, block.lines[index], memory)
    return answers, memory
