"""Rules of every simulated rebootstrap: functions of the events of a run.

They are computed from the events alone, not from the state machine that is checked.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from probing.rebootstrap import RebootstrapConfig, RecoveryStrategy
from tests.probing.rebootstrap.client import Seen

REACTION_MS: Final = 2_000
"""What a rebootstrap and the metadata after it may take beyond the trigger (plus the lookup)."""

_JITTER: Final = 0.2


def problems(
    seen: Sequence[Seen], config: RebootstrapConfig, *, usable_ms: int | None, extra_ms: int = 0
) -> list[str]:
    """Return a sentence for every rule that a run breaks.

    Args:
        seen: the run.
        config: of its client.
        usable_ms: from when on the bootstrap servers lead to brokers, for good; None if never.
        extra_ms: what lookups and the like may cost on top of the bound.
    """
    return [
        *_recovers(seen, config, usable_ms, extra_ms),
        *_none_means_never(seen, config),
        *_never_too_early(seen, config),
        *_demands_are_followed(seen, config),
        *_leaves_nodes_alone(seen, config),
    ]


def recovered_ms(seen: Sequence[Seen], after_ms: int) -> int | None:
    """Return when metadata with a broker first came after that time."""
    return next((s.at_ms for s in seen if s.what == "answer" and s.at_ms > after_ms), None)


def _recovers(
    seen: Sequence[Seen], config: RebootstrapConfig, usable_ms: int | None, extra_ms: int
) -> Iterator[str]:
    if usable_ms is None or config.strategy is RecoveryStrategy.NONE:
        return
    bound_ms = config.trigger_ms + REACTION_MS + extra_ms
    came_ms = recovered_ms(seen, usable_ms)
    if came_ms is None or came_ms - usable_ms > bound_ms:
        took = "never" if came_ms is None else f"after {came_ms - usable_ms} ms"
        yield f"brokers can be found from {usable_ms} ms on, metadata came {took}; {bound_ms} ms"


def _none_means_never(seen: Sequence[Seen], config: RebootstrapConfig) -> Iterator[str]:
    if config.strategy is RecoveryStrategy.NONE:
        yield from (
            f"{s.at_ms} ms: rebootstrap ({s.rule}) although the strategy is none"
            for s in seen
            if s.what == "rebootstrap"
        )


def _never_too_early(seen: Sequence[Seen], config: RebootstrapConfig) -> Iterator[str]:
    """Each rebootstrap has its reason in what was seen before it."""
    wanted_ms: int | None = None
    is_demanded = False
    known: set[str] = set()
    away: dict[str, int] = {}
    longest_ms = int(config.reconnect_backoff_max_ms * (1 + _JITTER))
    for event in seen:
        match event.what:
            case "wanted":
                wanted_ms = event.at_ms if wanted_ms is None else wanted_ms
            case "answer":
                wanted_ms, known = None, set(event.nodes)
                is_demanded = False
            case "resolved":
                known = set(event.nodes)
            case "demand":
                is_demanded = True
            case "attempt" | "ready":
                away.pop(event.nodes[0], None)
            case "lost":
                away[event.nodes[0]] = event.at_ms
            case "rebootstrap":
                reasons = {
                    "demanded by the server": is_demanded,
                    "metadata is overdue": wanted_ms is not None
                    and event.at_ms - wanted_ms > config.trigger_ms,
                    "no node is available": all(
                        node in away and event.at_ms - away[node] <= longest_ms for node in known
                    ),
                }
                if not reasons[event.rule]:
                    yield f"{event.at_ms} ms: rebootstrap ({event.rule}) without that reason"
                wanted_ms, is_demanded = event.at_ms, False


def _demands_are_followed(seen: Sequence[Seen], config: RebootstrapConfig) -> Iterator[str]:
    """A demand is followed at once, or after the back-off since the last rebootstrap."""
    verb = "required" if config.strategy is RecoveryStrategy.NONE else "rebootstrap"
    longest_ms = int(config.reconnect_backoff_max_ms * (1 + _JITTER))
    for number, event in enumerate(seen):
        if event.what == "demand":
            followed = next((s.at_ms for s in seen[number:] if s.what == verb), None)
            is_over = seen[-1].at_ms - event.at_ms <= longest_ms
            if not is_over and (followed is None or followed - event.at_ms > longest_ms):
                yield f"{event.at_ms} ms: the server's demand was not followed"


def _leaves_nodes_alone(seen: Sequence[Seen], config: RebootstrapConfig) -> Iterator[str]:
    """Between a failure and the next attempt lies a back-off, and it grows."""
    failures: dict[str, list[int]] = {}
    for event in seen:
        node = event.nodes[0] if event.nodes else ""
        if event.what == "ready":
            failures.pop(node, None)
        elif event.what == "lost":
            failures.setdefault(node, []).append(event.at_ms)
        elif event.what == "attempt" and node in failures:
            since = failures[node]
            least_ms = int(config.reconnect_backoff_ms * (1 - _JITTER))
            if event.at_ms - since[-1] < least_ms:
                waited_ms = event.at_ms - since[-1]
                yield f"{event.at_ms} ms: {node} is tried {waited_ms} ms after a failure"
    for event, other in pairwise(s for s in seen if s.what == "rebootstrap"):
        came = any(s.what == "answer" and event.at_ms <= s.at_ms <= other.at_ms for s in seen)
        if not came and other.at_ms - event.at_ms < config.reconnect_backoff_ms:
            yield f"{other.at_ms} ms: rebootstrap {other.at_ms - event.at_ms} ms after the last"
