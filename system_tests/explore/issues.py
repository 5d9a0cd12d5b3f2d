"""Which issue a finding is: told by what broke and how, never by the releases.

A row looks at the rule and at what happened from the last answer of a leader on. So a release that
has the same fault under another name is told by the old name, and a fault that is new by none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from system_tests.coordinator import EventKind, GroupEvent
from system_tests.sim import Answered, Broken, Cause, Ended, Happening, Rejoined, Started, Took
from system_tests.sim.world import INSTANCE

_Kind = TypeVar("_Kind")
_FOLLOWUP_ON_THE_WIRE = 7
# As leaders say it that read versions 1 and 2 only.
_CANNOT_READ = ("cannot be decoded", "unable to decode subscription data")
# As the rule of a leader before 2.4 is called.
_KEEPS_FORMER_TASKS = "empty answer to future members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What broke.

    Attributes:
        broken: the rule and its sentence.
        recent: what happened from the last answer of a leader on, or once round a cycle.
        repeats: it goes on for ever, without anybody's doing.
    """

    broken: Broken
    recent: tuple[Happening, ...]
    repeats: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One row: the id, how to tell it, and the sentence."""

    id: str
    tells: Callable[[Finding], bool]
    why: str


def _copies_what_it_cannot_write(finding: Finding) -> bool:
    taken = _last(finding.recent, Took)
    return (
        finding.broken.rule == "sets what it speaks"
        and taken is not None
        and taken.used_after == taken.commonly_supported_version > taken.used_before
    )


def _loses_a_followup_with_its_member(finding: Finding) -> bool:
    """The member that had to give partitions up, and to rejoin then, was restarted before that."""
    answer = _last(finding.recent, Answered)
    if finding.broken.rule != "nothing is forgotten" or answer is None or not answer.withheld:
        return False
    on_the_wire = max(one.version for one in answer.answers) >= _FOLLOWUP_ON_THE_WIRE
    gone = any(isinstance(one, Ended) for one in finding.recent)
    return gone and not on_the_wire


def _rejoin_is_ignored(finding: Finding) -> bool:
    return finding.broken.rule in ("nothing is forgotten", "settles") and any(
        isinstance(one, GroupEvent) and one.kind is EventKind.MEMBER_KEPT for one in finding.recent
    )


def _followup_cuts_a_rebalance_short(finding: Finding) -> bool:
    """A scheduled rejoin came, round after round, before everybody had the answer that asks for it.

    Releases from 2.6 on schedule a rejoin for another version like any follow-up; earlier ones
    leave the group and come back, which is another event.
    """
    if not (finding.broken.rule == "settles" and finding.repeats):
        return False
    return any(
        isinstance(one, GroupEvent)
        and one.kind is EventKind.MEMBER_REJOINED
        and one.reason in (Cause.FOLLOWUP, Cause.VERSION)
        for one in finding.recent
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


def _static_member_cannot_ask(finding: Finding) -> bool:
    """A member that wanted a rebalance came back in its own place, which is none."""
    if finding.broken.rule not in ("nothing is forgotten", "nobody stays future", "settles"):
        return False
    asking: set[str] = set()
    for one in finding.recent:
        if isinstance(one, Rejoined):
            asking.add(one.thread)
        elif isinstance(one, Started | Ended):
            asking.discard(one.thread)
        elif (
            isinstance(one, GroupEvent)
            and one.kind is EventKind.MEMBER_REPLACED
            and one.member_id.rpartition("-")[0].removesuffix(INSTANCE) in asking
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
        tells=_versions_1_and_2_only,
        why="a leader dies of a version that it cannot read, or answers version 1 in version 2",
    ),
    Issue(
        id="KAFKA-8649",
        tells=_copies_what_it_cannot_write,
        why="the second number of the answer is the leader's own, and a member copies it",
    ),
    Issue(
        id="KAFKA-9821",
        tells=_loses_a_followup_with_its_member,
        why="the member that gave partitions up alone knew that a follow-up was due, and restarted",
    ),
    Issue(
        id="KAFKA-9525",
        tells=_static_member_cannot_ask,
        why="a static member before 2.6 asks for a rebalance by subscribing anew, and the"
        " coordinator hands it its old answer",
    ),
    Issue(
        id="KAFKA-10455",
        tells=_rejoin_is_ignored,
        why="a member rejoined with the same bytes, and the coordinator kept its generation",
    ),
    Issue(
        id="KAFKA-14382",
        tells=_followup_cuts_a_rebalance_short,
        why="a follow-up starts the next rebalance before the running one is over",
    ),
    Issue(
        id="former-tasks",
        tells=_former_tasks_are_handed_back,
        why="a leader before 2.4 hands everybody's former tasks back while a newer member joins;"
        " one that missed the last answer still names what another got by it",
    ),
)
"""In the order in which they are asked; the first that tells gives its name."""


def issue_of(finding: Finding) -> str | None:
    """Return the id of the issue that a finding is, None where history knows nothing like it."""
    return next((issue.id for issue in ISSUES if issue.tells(finding)), None)


def _last(recent: Sequence[Happening], kind: type[_Kind]) -> _Kind | None:
    return next((one for one in reversed(recent) if isinstance(one, kind)), None)
