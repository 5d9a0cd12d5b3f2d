"""Errors of one group become its reject and do not affect other groups."""

from collections.abc import Callable
from typing import TypeVar

from assignor.placement import error_line
from encoding import RebalanceError, shown
from spark_assign.tables.rejects import Reject

_T = TypeVar("_T")


def guarded(name: str, step: Callable[[], _T], *, column: str = "", value: str = "") -> _T | Reject:
    """Run a step with one group: its result, or a reject of the group.

    Args:
        name: of the group, or "".
        step: reads, places or encodes the group, and nothing else.
        column: where the value stands, for the reject.
        value: as text, for the reject.

    Raises:
        MemoryError: the worker has too little memory; the message names the group and an option.
        KeyboardInterrupt: as the step raised it.
    """
    try:
        return step()
    except MemoryError:
        raise MemoryError(
            f"group {shown(name) or 'without a name'} needs more memory than a worker has; give "
            "fewer --cores, or a --huge-tasks below its number of tasks"
        ) from None
    except (Exception, GeneratorExit) as error:  # noqa: BLE001 any error is a reject
        return Reject(name=name, column=column, value=value, reason=reason_of(error))


def reason_of(error: BaseException) -> str:
    """The reason of a reject: the message of a RebalanceError, else the error with its type."""
    if isinstance(error, RebalanceError):
        return str(error)
    return f"the group cannot be placed, {error_line(error)}; report it with the group"
