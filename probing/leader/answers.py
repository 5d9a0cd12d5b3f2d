"""Decision table of the leader: the version and content of the answer to each member.

One ordered table serves all leader models: each row names its models and its condition, the last
row is for all. A leader that ends is an outcome, never an exception. Sources: KIP-268 and the code
of each release.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from probing.releases import LeaderModel, Release
from probing.rules import Rule, always
from probing.versions import EARLIEST_PROBEABLE_VERSION, UNKNOWN_VERSION


class Content(StrEnum):
    """What an answer contains besides its two version numbers."""

    NORMAL = "normal"
    EMPTY = "empty"
    PREVIOUS = "previous"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberVersions:
    """Versions of one subscription.

    Attributes:
        member_id: member id in the group.
        used_version: the version that the subscription is written in.
        latest_supported_version: its second number; ignored below version 3, which has none.
        quarantined: the bytes could not be decoded; the versions are meaningless.
        native_version: the latest native version that the member reads, from the trailer or the
            body; the second number if the body is unreadable; None for a JVM member.
        readable: the body could be read; False only for a native body that is too new.
        pinned: the member's ``upgrade.from`` pins the version it wrote.
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
        """Tell whether the used version is above the supported one."""
        return EARLIEST_PROBEABLE_VERSION <= self.used_version > self.latest_supported_version


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDecision:
    """The answer to one member: version, second number, content, and the row that decided.

    Attributes:
        next_version: version that a native member of a native leader writes next; else 0.
        subscription_read: whether the leader could read the body of such a member's subscription.
    """

    member_id: str
    version: int
    commonly_supported_version: int
    content: Content
    rule: str
    why: str
    next_version: int = 0
    subscription_read: bool = True

    @property
    def is_native(self) -> bool:
        """Whether a native leader answers a native member."""
        return self.next_version > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersions:
    """Inputs of the rows; versions as the leader sees them.

    A native leader puts native members into ``natives``; the other fields then cover JVM members
    alone. For a JVM leader all members are in ``members``, and ``natives`` is empty.

    Attributes:
        release: the leader's.
        members: the members that the table is about, including future members.
        natives: native members, each answered by a table of its own.
        future: members whose used version is above the ones that the leader reads.
        quarantined: members whose subscription is unreadable or contradictory.
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


class LeaderOutcome(StrEnum):
    """What the leader does with the group; the outcome of a row."""

    DIES = "the leader dies"
    ERROR_TO_ALL = "error to all members"
    ANSWERS = "answers"


OWN_LATEST: Final = "own latest"
LOWEST: Final = "lowest"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAnswers:
    """What a row says: the answers to future members and to the others.

    ``future_numbers`` and ``second_number`` name the source of a number: the leader's own latest
    version, or the lowest one in the group.
    """

    outcome: LeaderOutcome = LeaderOutcome.ANSWERS
    others_get: Content = Content.NORMAL
    future_get: Content = Content.NORMAL
    future_numbers: str = LOWEST
    second_number: str = LOWEST
    fixed_version: int | None = None


@dataclass(frozen=True, kw_only=True)
class LeaderRule(Rule[GroupVersions, LeaderAnswers]):
    """A row with the models that it is for."""

    models: frozenset[LeaderModel]


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
    "the group has a future subscription (version {future_version}) and one of a release before 2.0"
    " (version {lowest_used})"
)


def _is_mixture(group: GroupVersions) -> bool:
    """Tell whether the group has a future member and one that writes version 1 or 2."""
    return bool(group.future) and group.lowest_used < EARLIEST_PROBEABLE_VERSION


LEADER_RULES: Final = (
    LeaderRule(
        name="bytes that cannot be decoded",
        models=_ALL - _OURS,
        holds=lambda g: bool(g.quarantined),
        says=LeaderAnswers(outcome=LeaderOutcome.DIES),
        why="the subscription of {quarantined} cannot be decoded, so the leader ends; stop that"
        " member, or let a native member lead",
    ),
    LeaderRule(
        name="version the leader does not know",
        models=_PRE_PROBING,
        holds=lambda g: bool(g.undecodable),
        says=LeaderAnswers(outcome=LeaderOutcome.DIES),
        why="unable to decode subscription data: version={unknown_version}; set"
        " upgrade.from={series} on the newer members for a first rolling bounce, and remove it in a"
        " second one",
    ),
    LeaderRule(
        name="future member beside version 1 or 2",
        models=_DIES_OF_MIXTURE,
        holds=_is_mixture,
        says=LeaderAnswers(outcome=LeaderOutcome.DIES),
        why=_MIXTURE_TEXT + ", so a leader of this release ends; set upgrade.from on the future"
        " member too, or finish the second bounce first",
    ),
    LeaderRule(
        name="future member beside version 1 or 2",
        models=frozenset({LeaderModel.NORMAL_OR_ERROR}),
        holds=_is_mixture,
        says=LeaderAnswers(outcome=LeaderOutcome.ERROR_TO_ALL),
        why=_MIXTURE_TEXT + ", so all members get error 3 in version {latest}; set upgrade.from on"
        " the future member too, or finish the second bounce first",
    ),
    LeaderRule(
        name="natives only",
        models=_OURS,
        holds=lambda g: bool(g.natives) and not g.members,
        says=LeaderAnswers(),
        why="all members are native: each is answered in the version that it wrote, with the"
        " version to write next; no member rejoins for this",
    ),
    LeaderRule(
        name="always version 2",
        models=frozenset({LeaderModel.ALWAYS_VERSION_2}),
        holds=always,
        says=LeaderAnswers(fixed_version=2),
        why="a leader of this release answers all members in version 2, whatever they wrote"
        " (KAFKA-6054)",
    ),
    LeaderRule(
        name="a member writes version 1 or 2",
        models=_ALL,
        holds=lambda g: g.lowest_used < EARLIEST_PROBEABLE_VERSION,
        says=LeaderAnswers(),
        why="version {lowest_used} is the lowest used version; it has no second number, so all"
        " members keep their versions until that member is bounced",
    ),
    LeaderRule(
        name="empty answer to future members, own number",
        models=frozenset({LeaderModel.EMPTY_AND_OWN}),
        holds=lambda g: bool(g.future),
        says=LeaderAnswers(
            others_get=Content.PREVIOUS,
            future_get=Content.EMPTY,
            future_numbers=OWN_LATEST,
            second_number=OWN_LATEST,
        ),
        why="{future} wrote above {latest} and gets an empty answer in the leader's latest version;"
        " the others get their previous tasks",
    ),
    LeaderRule(
        name="empty answer to future members, lowest number",
        models=frozenset({LeaderModel.EMPTY_AND_LOWEST}),
        holds=lambda g: bool(g.future),
        says=LeaderAnswers(others_get=Content.PREVIOUS, future_get=Content.EMPTY),
        why="{future} wrote above {latest} and gets an empty answer; the others get their previous"
        " tasks; all answers are in version {lowest_used}",
    ),
    LeaderRule(
        name="separate tasks for future members",
        models=frozenset({LeaderModel.SEPARATE_TASKS}),
        holds=lambda g: bool(g.future),
        says=LeaderAnswers(others_get=Content.PREVIOUS),
        why="{future} wrote above {latest} and gets tasks without an owner; the others get their"
        " previous tasks; all answers are in version {lowest_used}",
    ),
    LeaderRule(
        name="empty answer to future members, by the text",
        models=frozenset({LeaderModel.KIP_TEXT}),
        holds=lambda g: bool(g.future),
        says=LeaderAnswers(
            future_get=Content.EMPTY, future_numbers=OWN_LATEST, second_number=OWN_LATEST
        ),
        why="{future} wrote above {latest} and gets an empty answer in the leader's latest version;"
        " the others get a regular answer in {lowest_used}",
    ),
    LeaderRule(
        name="lowest used version, own number",
        models=_OWN_NUMBER,
        holds=always,
        says=LeaderAnswers(second_number=OWN_LATEST),
        why="version {lowest_used} is the lowest used version; the second number is the leader's"
        " own {latest}",
    ),
    LeaderRule(
        name="future members answered in the lowest version",
        models=_NORMAL_FOR_ALL,
        holds=lambda g: bool(g.future),
        says=LeaderAnswers(),
        why="{future} wrote above {latest}: all members get tasks in version {lowest_used}, the"
        " lowest used; all support the second number, {lowest_supported}",
    ),
    LeaderRule(
        name="lowest used version",
        models=_ALL,
        holds=always,
        says=LeaderAnswers(),
        why="version {lowest_used} is the lowest used version; all members support the second"
        " number, {lowest_supported}",
    ),
)
