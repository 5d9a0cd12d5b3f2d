"""Known issues, recognised by the broken rule and the events before it, never by the releases.

A row checks the rule and the events since the last assignment of a leader. A release with the same
fault under another name gets the id of the known issue. A new fault gets no id.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.engine import Broken
from system_tests.sim import Answered, Cause, Ended, Happening, Rejoined, Started, Took
from system_tests.sim.world import INSTANCE

_Kind = TypeVar("_Kind")
_FOLLOWUP_ON_THE_WIRE = 7
# Version of the first release whose members keep tasks in a rebalance (2.4).
_COOPERATIVE = 5
# Error messages of leaders that read versions 1 and 2 only.
_CANNOT_READ = ("cannot be decoded", "unable to decode subscription data")
# Part of the name of the rule by which leaders before 2.4 assign.
_KEEPS_FORMER_TASKS = "empty answer to future members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A broken rule with the events that led to it.

    Attributes:
        broken: the rule and its sentence.
        recent: events since the last assignment of a leader; for a cycle, its events.
        repeats: the events form a cycle that repeats without any operator action.
    """

    broken: Broken
    recent: tuple[Happening, ...]
    repeats: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One known issue: its id, the predicate that recognises it, and a sentence about it."""

    id: str
    matches: Callable[[Finding], bool]
    why: str


def _copies_what_it_cannot_write(finding: Finding) -> bool:
    taken = _last(finding.recent, Took)
    return (
        finding.broken.rule == "sets what it speaks"
        and taken is not None
        and taken.used_after == taken.commonly_supported_version > taken.used_before
    )


def _loses_a_followup_with_its_member(finding: Finding) -> bool:
    """The member that had to revoke partitions and then rejoin was restarted before it did."""
    answer = _last(finding.recent, Answered)
    if finding.broken.rule != "nothing is forgotten" or answer is None or not answer.withheld:
        return False
    on_the_wire = (
        max(member_answer.version for member_answer in answer.answers) >= _FOLLOWUP_ON_THE_WIRE
    )
    gone = any(isinstance(event, Ended) for event in finding.recent)
    return gone and not on_the_wire


def _rejoin_is_ignored(finding: Finding) -> bool:
    return finding.broken.rule in ("nothing is forgotten", "settles") and any(
        isinstance(event, GroupEvent) and event.kind is EventKind.MEMBER_KEPT
        for event in finding.recent
    )


def _followup_cuts_a_rebalance_short(finding: Finding) -> bool:
    """Scheduled rejoins interrupt every rebalance before all members have their assignment.

    Releases from 2.6 on schedule a rejoin for another version like any follow-up; earlier releases
    leave the group and join again, which is another event.
    """
    if not (finding.broken.rule == "settles" and finding.repeats):
        return False
    return any(
        isinstance(event, GroupEvent)
        and event.kind is EventKind.MEMBER_REJOINED
        and event.reason in (Cause.FOLLOWUP, Cause.VERSION)
        for event in finding.recent
    )


def _former_tasks_are_handed_back(finding: Finding) -> bool:
    answer = _last(finding.recent, Answered)
    return (
        finding.broken.rule in ("one owner", "one active")
        and answer is not None
        and not answer.leader_is_native
        and bool(answer.future)
        and _KEEPS_FORMER_TASKS in answer.rule
    )


def _kept_tasks_are_given_away(finding: Finding) -> bool:
    """A leader gave what a member keeps to another one, in a version of leaders before 2.4."""
    answer = _last(finding.recent, Answered)
    return (
        finding.broken.rule in ("one owner", "one active")
        and answer is not None
        and not (answer.leader_is_native or answer.future or answer.withheld)
        and answer.version < _COOPERATIVE
    )


def _static_member_cannot_ask(finding: Finding) -> bool:
    """A static member rejoined to request a rebalance, and the coordinator started none."""
    if finding.broken.rule not in ("nothing is forgotten", "nobody stays future", "settles"):
        return False
    asking: set[str] = set()
    for event in finding.recent:
        if isinstance(event, Rejoined):
            asking.add(event.thread)
        elif isinstance(event, Started | Ended):
            asking.discard(event.thread)
        elif (
            isinstance(event, GroupEvent)
            and event.kind is EventKind.MEMBER_REPLACED
            and event.member_id.rpartition("-")[0].removesuffix(INSTANCE) in asking
        ):
            return True
    return False


def _versions_1_and_2_only(finding: Finding) -> bool:
    if finding.broken.rule == "nobody dies":
        return any(words in finding.broken.sentence for words in _CANNOT_READ)
    answer = _last(finding.recent, Answered)
    return (
        finding.broken.rule in ("answered within used", "answered in the lowest")
        and answer is not None
        and min(used for used in answer.used_versions if used) == 1
    )


ISSUES: tuple[Issue, ...] = (
    Issue(
        id="KAFKA-6054",
        matches=_versions_1_and_2_only,
        why="a leader crashes on a version that it cannot read, or answers version 1 in version 2",
    ),
    Issue(
        id="KAFKA-8649",
        matches=_copies_what_it_cannot_write,
        why="the leader sends its own latest version as the common one, and a member adopts it",
    ),
    Issue(
        id="KAFKA-9821",
        matches=_loses_a_followup_with_its_member,
        why="only the member that revoked partitions knew of the follow-up rebalance, and it was"
        " restarted",
    ),
    Issue(
        id="KAFKA-9525",
        matches=_static_member_cannot_ask,
        why="a static member before 2.6 requests a rebalance by subscribing again, and the"
        " coordinator returns its old assignment",
    ),
    Issue(
        id="KAFKA-10455",
        matches=_rejoin_is_ignored,
        why="a member rejoined with unchanged metadata, and the coordinator started no rebalance",
    ),
    Issue(
        id="KAFKA-14382",
        matches=_followup_cuts_a_rebalance_short,
        why="a follow-up rebalance starts before the running one has completed",
    ),
    Issue(
        id="former-tasks",
        matches=_former_tasks_are_handed_back,
        why="a leader before 2.4 returns each member its previous tasks while a newer member joins;"
        " a member that missed the last assignment still names tasks that another member now has",
    ),
    Issue(
        id="KIP-429",
        matches=_kept_tasks_are_given_away,
        why="a leader before 2.4 gives tasks away that a member keeps during the rebalance",
    ),
)
"""Known issues, in the order in which they are checked; the first match counts."""


def issue_of(finding: Finding) -> str | None:
    """Return the id of the first issue that matches a finding; None for no known issue."""
    return next((issue.id for issue in ISSUES if issue.matches(finding)), None)


def _last(recent: Sequence[Happening], kind: type[_Kind]) -> _Kind | None:
    return next((event for event in reversed(recent) if isinstance(event, kind)), None)
