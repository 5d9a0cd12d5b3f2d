"""The leader's table: which version each member is answered in, and with what.

One ordered table for every leader model of history; a row says which models it is for and when it
holds, and the last row is for all. A leader that history lets die is a verdict, never an exception.
Sources: KIP-268 and the code of each release.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from probing.member import NativeAnswer
from probing.releases import LeaderModel, Release
from probing.versions import EARLIEST_PROBEABLE_VERSION, UNKNOWN_VERSION


class Content(StrEnum):
    """What an answer holds beside its two numbers."""

    NORMAL = "normal"
    EMPTY = "empty"
    PREVIOUS = "previous"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberVersions:
    """What one subscription says about versions.

    Attributes:
        member_id: the group's name for the member.
        used_version: the version that the subscription is written in.
        latest_supported_version: its second number; not looked at below version 3, which has none.
        quarantined: the bytes could not be decoded; the numbers mean nothing.
        native_version: the latest version of ours that the member reads, from the trailer or the
            body, or its second number when the body could not be read; None for a JVM member.
        readable: the body could be read; False only for a native body that is too new.
        pinned: the member says that its ``upgrade.from`` pins the version it wrote.
    """

    member_id: str
    used_version: int
    latest_supported_version: int
    quarantined: bool = False
    native_version: int | None = None
    readable: bool = True
    pinned: bool = False

    @property
    def supported_as_seen(self) -> int:
        """Return the supported version as a leader sees it: unknown below version 3."""
        probes = self.used_version >= EARLIEST_PROBEABLE_VERSION
        return self.latest_supported_version if probes else UNKNOWN_VERSION

    @property
    def contradicts_itself(self) -> bool:
        """Tell whether the two numbers cannot both be true."""
        return EARLIEST_PROBEABLE_VERSION <= self.used_version > self.latest_supported_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one member gets: the version of its bytes, the second number, and what is in it.

    ``native`` is there for native members of a leader of ours; JVM members get nothing of it.
    """

    member_id: str
    version: int
    commonly_supported_version: int
    content: Content
    rule: str
    why: str
    native: NativeAnswer | None = None

    @property
    def next_version(self) -> int:
        """Return what the member is told to write next; 0 for a JVM member."""
        return 0 if self.native is None else self.native.next_version

    @property
    def subscription_read(self) -> bool:
        """Tell whether the leader read the member's body, as far as the answer says."""
        return self.native is None or self.native.subscription_read


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersions:
    """What the rows of the table may look at; versions as the leader sees them.

    For a leader of ours ``natives`` are apart: the other fields are about JVM members alone. For a
    JVM leader everybody is a member, and there are no natives.

    Attributes:
        release: the leader's.
        members: who counts, the future members among them.
        natives: members of ours, answered one by one.
        future: members whose used version is above what the leader reads.
        quarantined: members whose bytes cannot be read or believed.
        lowest_used, lowest_supported: over ``members``, at most the leader's latest.
        lowest_native: the greatest native version that the leader and all natives read.
        level: the finalized level of the protocol, if any.
    """

    release: Release
    members: tuple[MemberVersions, ...]
    natives: tuple[MemberVersions, ...]
    future: tuple[MemberVersions, ...]
    quarantined: tuple[MemberVersions, ...]
    lowest_used: int
    lowest_supported: int
    lowest_native: int
    level: int | None = None

    @property
    def latest(self) -> int:
        """Return the leader's own latest version."""
        return self.release.latest_version

    @property
    def undecodable(self) -> tuple[int, ...]:
        """Return the used versions that a leader without probing cannot decode."""
        known = self.release.known_versions
        return tuple(sorted({m.used_version for m in self.members if m.used_version not in known}))


class Verdict(StrEnum):
    """What a row makes of the group."""

    DIES = "the leader dies"
    ERROR_TO_ALL = "error to everybody"
    ANSWERS = "answers"


OWN_LATEST: Final = "own latest"
LOWEST: Final = "lowest"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderRule:
    """One row: for which models, when it holds, and how the two kinds of member are answered.

    ``future_numbers`` and ``second_number`` say where a number comes from: the leader's own latest
    version, or the lowest one in the group. ``why`` is a format string, see ``_sentence``.
    """

    name: str
    models: frozenset[LeaderModel]
    holds: Callable[[GroupVersions], bool]
    why: str
    verdict: Verdict = Verdict.ANSWERS
    others_get: Content = Content.NORMAL
    future_get: Content = Content.NORMAL
    future_numbers: str = LOWEST
    second_number: str = LOWEST
    fixed_version: int | None = None

    @property
    def is_unconditional(self) -> bool:
        """Tell whether no later row can fire for these models."""
        return self.holds is _always


_ALL: Final = frozenset(LeaderModel)
_PRE_PROBING: Final = frozenset(
    {LeaderModel.VERSION_1_ONLY, LeaderModel.ALWAYS_VERSION_2, LeaderModel.LOWEST_USED}
)
_OURS: Final = frozenset({LeaderModel.NATIVE})
_OWN_NUMBER: Final = frozenset({LeaderModel.EMPTY_AND_OWN, LeaderModel.KIP_TEXT})
_DIES_OF_MIXTURE: Final = frozenset(
    {
        LeaderModel.EMPTY_AND_OWN,
        LeaderModel.EMPTY_AND_LOWEST,
        LeaderModel.SEPARATE_TASKS,
        LeaderModel.NORMAL_OR_DEAD,
        LeaderModel.KIP_TEXT,
    }
)
_NORMAL_FOR_ALL: Final = frozenset(
    {LeaderModel.NORMAL_OR_DEAD, LeaderModel.NORMAL_OR_ERROR, LeaderModel.NATIVE}
)
_MIXTURE_TEXT: Final = (
    "a future subscription (version {future_version}) and one from before 2.0 (version"
    " {lowest_used}) are in the group at the same time"
)


def _always(_: GroupVersions) -> bool:
    return True


def _is_mixture(group: GroupVersions) -> bool:
    """Tell whether a future member stands beside one that cannot be probed with."""
    return bool(group.future) and group.lowest_used < EARLIEST_PROBEABLE_VERSION


LEADER_RULES: Final = (
    LeaderRule(
        name="bytes that cannot be decoded",
        models=_ALL - _OURS,
        holds=lambda g: bool(g.quarantined),
        verdict=Verdict.DIES,
        why="the subscription of {quarantined} cannot be decoded, and the leader ends with it;"
        " stop that member, or let a native member lead",
    ),
    LeaderRule(
        name="version the leader does not know",
        models=_PRE_PROBING,
        holds=lambda g: bool(g.undecodable),
        verdict=Verdict.DIES,
        why="unable to decode subscription data: version={unknown_version}; set"
        " upgrade.from={series} on the newer members for a first rolling bounce, and take it out"
        " again in a second one",
    ),
    LeaderRule(
        name="future member beside version 1 or 2",
        models=_DIES_OF_MIXTURE,
        holds=_is_mixture,
        verdict=Verdict.DIES,
        why=_MIXTURE_TEXT + ", and a leader of this release ends with it; set upgrade.from on the"
        " future member too, or finish the second bounce first",
    ),
    LeaderRule(
        name="future member beside version 1 or 2",
        models=frozenset({LeaderModel.NORMAL_OR_ERROR}),
        holds=_is_mixture,
        verdict=Verdict.ERROR_TO_ALL,
        why=_MIXTURE_TEXT + "; everybody gets error 3 in version {latest}; set upgrade.from on the"
        " future member too, or finish the second bounce first",
    ),
    LeaderRule(
        name="natives only",
        models=_OURS,
        holds=lambda g: bool(g.natives) and not g.members,
        why="every member is ours: each is answered in the version that it wrote and told what to"
        " write next time, and nobody rejoins for it",
    ),
    LeaderRule(
        name="always version 2",
        models=frozenset({LeaderModel.ALWAYS_VERSION_2}),
        holds=_always,
        fixed_version=2,
        why="a leader of this release answers everybody in version 2, whatever they wrote"
        " (KAFKA-6054)",
    ),
    LeaderRule(
        name="somebody writes version 1 or 2",
        models=_ALL,
        holds=lambda g: g.lowest_used < EARLIEST_PROBEABLE_VERSION,
        why="version {lowest_used} is the lowest that anybody wrote; it has no second number, so"
        " nobody goes up until that member is bounced",
    ),
    LeaderRule(
        name="empty answer to future members, own number",
        models=frozenset({LeaderModel.EMPTY_AND_OWN}),
        holds=lambda g: bool(g.future),
        others_get=Content.PREVIOUS,
        future_get=Content.EMPTY,
        future_numbers=OWN_LATEST,
        second_number=OWN_LATEST,
        why="{future} wrote above {latest}: an empty answer to them in the leader's latest version,"
        " previous tasks to the others",
    ),
    LeaderRule(
        name="empty answer to future members, lowest number",
        models=frozenset({LeaderModel.EMPTY_AND_LOWEST}),
        holds=lambda g: bool(g.future),
        others_get=Content.PREVIOUS,
        future_get=Content.EMPTY,
        why="{future} wrote above {latest}: an empty answer to them, previous tasks to the others,"
        " version {lowest_used} to all",
    ),
    LeaderRule(
        name="separate tasks for future members",
        models=frozenset({LeaderModel.SEPARATE_TASKS}),
        holds=lambda g: bool(g.future),
        others_get=Content.PREVIOUS,
        why="{future} wrote above {latest}: tasks that nobody had go to them, previous tasks to the"
        " others, version {lowest_used} to all",
    ),
    LeaderRule(
        name="empty answer to future members, by the text",
        models=frozenset({LeaderModel.KIP_TEXT}),
        holds=lambda g: bool(g.future),
        future_get=Content.EMPTY,
        future_numbers=OWN_LATEST,
        second_number=OWN_LATEST,
        why="{future} wrote above {latest}: an empty answer to them in the leader's latest version,"
        " a regular answer in {lowest_used} to the others",
    ),
    LeaderRule(
        name="lowest used version, own number",
        models=_OWN_NUMBER,
        holds=_always,
        second_number=OWN_LATEST,
        why="version {lowest_used} is the lowest that anybody wrote; the second number is the"
        " leader's own {latest}",
    ),
    LeaderRule(
        name="future members answered in the lowest version",
        models=_NORMAL_FOR_ALL,
        holds=lambda g: bool(g.future),
        why="{future} wrote above {latest}: tasks for everybody in version {lowest_used}, the"
        " lowest that anybody wrote; the second number {lowest_supported} says how far all can go",
    ),
    LeaderRule(
        name="lowest used version",
        models=_ALL,
        holds=_always,
        why="version {lowest_used} is the lowest that anybody wrote; the second number"
        " {lowest_supported} says how far all can go",
    ),
)
