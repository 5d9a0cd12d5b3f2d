"""Rules about whole traces: the group settles, in which version, after how many rebalances.

A generation is counted from the first settled group on, under the first cause that holds:

- *membership*: a member was started, stopped, expired or removed since the one before, or the
  coordinator moved;
- *version*: a member rejoined to write another version, or the same one again because the answer
  came in a lower one;
- *followup*: a member rejoined because a task moves, a host is missing, or a follow-up was due;
- *repeated*: a member missed an answer, or lost a connection, and joined again.
"""

from collections.abc import Iterable, Sequence

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.engine import Broken
from system_tests.rebalances import Rebalances
from system_tests.sim.events import Cause, Happening, Settled, Unsettled

_MEMBERSHIP, _VERSION, _FOLLOWUP = "membership", "version", "followup"
_CAUSE_BY_REASON = {
    Cause.STARTED: _MEMBERSHIP,
    Cause.STOPPED: _MEMBERSHIP,
    Cause.LOST: _MEMBERSHIP,
    Cause.VERSION: _VERSION,
    Cause.FOLLOWUP: _FOLLOWUP,
    Cause.REVOKED: _FOLLOWUP,
}
_COMES_OR_GOES = frozenset(
    {EventKind.MEMBER_JOINED, EventKind.MEMBER_LEFT, EventKind.MEMBER_REJOINED}
)
_ALWAYS_MEMBERSHIP = frozenset(
    {EventKind.MEMBER_EXPIRED, EventKind.MEMBER_REPLACED, EventKind.GROUP_RELOADED}
)


def count_rebalances(trace: Iterable[Happening]) -> Rebalances:
    """Sort the generations of a trace by what caused them."""
    found: dict[str, list[int]] = {_MEMBERSHIP: [], _VERSION: [], _FOLLOWUP: [], "": []}
    causes: set[str] = set()
    counts = False
    for event in trace:
        if isinstance(event, Settled):
            counts = True
        elif not isinstance(event, GroupEvent):
            continue
        elif event.kind is EventKind.GENERATION_COMPLETED:
            cause = next((c for c in (_MEMBERSHIP, _VERSION, _FOLLOWUP) if c in causes), "")
            if counts:
                found[cause].append(event.generation)
            causes.clear()
        elif event.kind in _COMES_OR_GOES:
            causes.add(_CAUSE_BY_REASON.get(event.reason, ""))
        elif event.kind in _ALWAYS_MEMBERSHIP:
            causes.add(_MEMBERSHIP)
    return Rebalances(
        membership=tuple(found[_MEMBERSHIP]),
        version=tuple(found[_VERSION]),
        followup=tuple(found[_FOLLOWUP]),
        repeated=tuple(found[""]),
    )


def check_settles(trace: Iterable[Happening]) -> list[Broken]:
    """The group comes to rest in the time it was given, after every step of the operator."""
    return [
        Broken(
            rule="settles",
            at_ms=event.at_ms,
            sentence=f"the group did not settle within {event.within_ms} ms: {event.why}",
        )
        for event in trace
        if isinstance(event, Unsettled)
    ]


def check_resting_versions(
    trace: Sequence[Happening], resting_versions: Sequence[int], *, is_uniform: bool = True
) -> list[Broken]:
    """In its last rest all members write a version that the path allows; if uniform, the same.

    Args:
        trace: up to where the group rests after the last bounce.
        resting_versions: that members may write then.
        is_uniform: they all write the same.
    """
    last = _last_settled(trace)
    if last is None:
        return []
    astray = [(name, used) for name, used in last.used_versions if used not in resting_versions]
    reached = {used for _, used in last.used_versions}
    if not astray and (len(reached) <= 1 or not is_uniform):
        return []
    allowed = " or ".join(f"v{version}" for version in resting_versions)
    return [_final_versions(last, f"the path ends at {allowed}")]


def check_final_version(trace: Sequence[Happening], final_version: int) -> list[Broken]:
    """After the rebalance that is forced at the end, every member writes exactly this version.

    Args:
        trace: of that rebalance; one in which the group does not settle breaks another rule.
        final_version: the latest that all members support.
    """
    last = _last_settled(trace)
    if last is None or {used for _, used in last.used_versions} == {final_version}:
        return []
    return [_final_versions(last, f"after one more rebalance all members write v{final_version}")]


def check_all_members_are_up(missing: Sequence[str], *, at_ms: int) -> list[Broken]:
    """After the operator's last step every thread runs.

    Args:
        missing: threads that do not run then.
        at_ms: when that was checked.
    """
    if not missing:
        return []
    sentence = f"all was started, and {', '.join(missing)} does not run"
    return [Broken(rule="nobody dies", at_ms=at_ms, sentence=sentence)]


def _last_settled(trace: Sequence[Happening]) -> Settled | None:
    return next((event for event in reversed(trace) if isinstance(event, Settled)), None)


def _final_versions(settled: Settled, promise: str) -> Broken:
    written = ", ".join(f"{name} v{used}" for name, used in settled.used_versions)
    sentence = f"{promise}, and the members write {written}"
    return Broken(rule="final versions", at_ms=settled.at_ms, sentence=sentence)


def check_version_rebalances(counted: Rebalances, bound: int, *, at_ms: int) -> list[Broken]:
    """Version probing costs no more rebalances than the bound; `at_ms`: the end of the trace."""
    version = counted.version
    if len(version) <= bound:
        return []
    sentence = f"{len(version)} rebalances for the version, and {bound} are allowed"
    return [Broken(rule="version rebalances", at_ms=at_ms, sentence=sentence)]
