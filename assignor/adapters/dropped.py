"""Clients that an application drops without closing them: reported, and released on a thread."""

import _thread
import os
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import finalize

from assignor.logs import line_logger

_log = line_logger(__name__)


def release_if_dropped(
    owner: object, release: Callable[..., object], *parts: object, is_reported: bool = False
) -> Any:
    """Have the parts of an object released if it is dropped without `close`.

    A `ResourceWarning` names the object's class. Nothing happens at the end of the process, nor in
    a forked one, which has none of the threads.

    Args:
        owner: no part may refer to it, or it is never dropped.
        release: called with the parts on a thread of its own; it may wait.
        parts: of the object.
        is_reported: the object warns by itself.

    Returns:
        A `weakref.finalize`; `close` calls its `detach`.
    """
    name = "" if is_reported else type(owner).__name__
    finalizer = finalize(owner, _dropped, name, os.getpid(), release, parts)
    finalizer.atexit = False
    return finalizer


def _dropped(
    name: str, pid: int, release: Callable[..., object], parts: tuple[object, ...]
) -> None:
    if os.getpid() != pid:
        return
    # The collector runs on any thread, whatever locks it holds, and `Thread.start` needs one.
    with suppress(RuntimeError):  # the interpreter ends
        _thread.start_new_thread(_start_release, (release, parts))
    if name:
        sentence = f"unclosed {name}: call its close, or use it in a `with` statement"
        warnings.warn(sentence, ResourceWarning, stacklevel=2)


def _start_release(release: Callable[..., object], parts: tuple[object, ...]) -> None:
    threading.Thread(target=_released, args=(release, parts), name="dropped", daemon=True).start()


def _released(release: Callable[..., object], parts: tuple[object, ...]) -> None:
    try:
        release(*parts)
    except Exception:  # noqa: BLE001 nobody can catch it
        _log.warning("a client that was dropped without close cannot be released", exc_info=True)
