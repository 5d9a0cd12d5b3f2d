"""Find the members whose bytes make a step of the leader fail, and answer without them.

Subscriptions are validated before any step uses them. If a step fails nevertheless, the other
members must still get their tasks: the leader answers again without the bytes of some members,
until it has found those that cause the failure. Clients send no heartbeats meanwhile, so the number
of these runs is bounded by what they cost.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from assignor.errors import LeaderRefused, TaskAssignmentError
from encoding import shown

MAX_RUNS = 64
_MIN_RUNS = 8
_BUDGET_US = 1_000_000  # a tenth of the shortest default session timeout, aiokafka's 10 s
_RUN_US = 25  # of a run, for each member and task: 0.28 s for 1,000 members and 10,000 tasks
_LISTED = 5

Answer = TypeVar("Answer")
Ignored = Mapping[str, str]


def search_runs(size: int) -> int:
    """Return how often a group may be answered to find a fault; `size`: its members and tasks."""
    return min(MAX_RUNS, max(_MIN_RUNS, _BUDGET_US // (_RUN_US * max(1, size))))


def answer_with_quarantine(
    answer: Callable[[Ignored], Answer],
    members: Sequence[str],
    *,
    runs: int = MAX_RUNS,
    otherwise: Callable[[str], Answer],
) -> tuple[Answer, str]:
    """Answer a group; if a step fails, answer it without the bytes of the members that cause it.

    Returns the answer, and a sentence about the failure; empty if there was none.

    Args:
        answer: makes the answers, given member id -> why that member's bytes are not used.
        members: ids of possible causes; the leader itself is not among them.
        runs: calls of `answer`, at most. If they do not suffice to tell some members apart, all of
            these are left out.
        otherwise: makes the answers without a strategy, given a reason: for a failure that no
            member causes.

    Raises:
        LeaderRefused: an emulated leader fails on the group, as its release does.
        TaskAssignmentError: nothing that can be sent was found.
        MemoryError: is not handled, like everything that is no `Exception`.
    """
    try:
        return answer({}), ""
    except (LeaderRefused, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 a defect of this package must not stop the group
        first = error
    failure = f"{type(first).__name__}: {shown(first)}"
    found = _find(answer, tuple(members), failure, runs - 2)
    if found is not None:
        causes, answered = found
        listed = ", ".join(map(shown, causes[:_LISTED]))
        more = f" and {len(causes) - _LISTED} more" if len(causes) > _LISTED else ""
        fault = (
            f"the leader failed on the subscription of member {listed}{more} ({failure}): it is"
            " quarantined, the other members continue; this is a defect, please report it with that"
            " member's bytes"
        )
        return answered, fault
    if isinstance(first, TaskAssignmentError):
        raise first
    fault = f"the leader failed ({failure}): this is a defect, please report it"
    try:
        return otherwise(fault), f"{fault}; tasks stay where they ran"
    except (LeaderRefused, MemoryError):
        raise
    except Exception:  # noqa: BLE001 the first error is the cause
        raise TaskAssignmentError(f"{fault}; nothing is sent, the group joins again") from first


def _find(
    answer: Callable[[Ignored], Answer], members: tuple[str, ...], failure: str, runs: int
) -> tuple[tuple[str, ...], Answer] | None:
    """The smallest set found of members without whose bytes there is an answer, and that answer.

    A failure that depends on most members' bytes is the leader's own: then the result is None.
    """
    works: dict[frozenset[str], Answer | None] = {}

    def answered(left_out: frozenset[str], most: int = runs) -> Answer | None:
        if left_out not in works and len(works) < most:
            works[left_out] = _attempt(answer, left_out, failure)
        return works.get(left_out)

    def search(among: tuple[str, ...], base: frozenset[str]) -> frozenset[str]:
        """Those of the members that must be left out besides `base`; leaving out all is enough."""
        if len(among) == 1 or len(works) >= runs:
            return frozenset(among)
        half = len(among) // 2
        left, right = among[:half], among[half:]
        for part in (left, right):
            if answered(base | set(part)) is not None:
                return search(part, base)
        culprits = search(left, base | set(right))
        return culprits | search(right, base | culprits)

    if not members or answered(frozenset(members)) is None:
        return None
    culprits = search(members, frozenset())
    if len(members) > 2 and 2 * len(culprits) > len(members):  # noqa: PLR2004 a majority of several
        return None  # not caused by single members
    found = answered(culprits, runs + 1)
    return None if found is None else (tuple(sorted(culprits)), found)


def _attempt(
    answer: Callable[[Ignored], Answer], left_out: frozenset[str], failure: str
) -> Answer | None:
    why = f"the leader fails on its subscription: {failure}"
    try:
        return answer(dict.fromkeys(sorted(left_out), why))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 the search continues without others
        return None
