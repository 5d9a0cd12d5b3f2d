"""The guard around a group: what goes wrong with it is its own reject, and costs no other group."""

from collections.abc import Callable
from typing import TypeVar

from assignor.placement import error_line
from encoding import RebalanceError
from spark_assign.tables.checks import Reject

_T = TypeVar("_T")


def guarded(name: str, step: Callable[[], _T], *, column: str = "", value: str = "") -> _T | Reject:
    """What a step with one group returns, or why the group is rejected.

    Args:
        name: of the group, or "".
        step: reads, places or encodes the group, and nothing else.
        column: where the value stands, for the reject.
        value: as text, for the reject.

    Raises:
        MemoryError, KeyboardInterrupt: as the step raised them; they are not the group's fault.
    """
    try:
        return step()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 a reject, whatever is wrong with the group
        return Reject(name=name, column=column, value=value, reason=reason_of(error))


def reason_of(error: Exception) -> str:
    """Why a group is rejected: the sentence of an error of ours, else the error itself."""
    if isinstance(error, RebalanceError):
        return str(error)
    return f"the group cannot be placed, {error_line(error)}; report it with the group"
