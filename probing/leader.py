"""The leader's half of version probing: which version each member is answered in, and with what.

One ordered table for every leader model of history; a row says which models it is for and when it
holds, and the last row is for all. A leader that history lets die is an outcome (``Refuse``), never
an exception: nothing raises for what a peer may write. Sources: KIP-268 and the release's code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from probing.events import Refuse
from probing.models import LeaderModel
from probing.releases import Release
from probing.versions import EARLIEST_PROBEABLE_VERSION, UNKNOWN_VERSION, greatest_known_version

ASSIGNMENT_ERROR: Final = 3
"""The code of an answer that ends every Kafka member that can read it."""

_CHECKS_SUPPORTED_SINCE: Final = (2, 5)
"""Kafka's decoder refuses a supported version below the used one from this series on."""


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
    """

    member_id: str
    used_version: int
    latest_supported_version: int
    quarantined: bool = False

    @property
    def supported_as_seen(self) -> int:
        """Return the supported version as a leader sees it: unknown below version 3."""
        probes = self.used_version >= EARLIEST_PROBEABLE_VERSION
        return self.latest_supported_version if probes else UNKNOWN_VERSION

    @property
    def contradicts_itself(self) -> bool:
        """Tell whether the two numbers cannot both be true."""
        too_low = self.supported_as_seen < self.used_version
        return self.used_version < 1 or (
            too_low and self.used_version >= EARLIEST_PROBEABLE_VERSION
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one member gets: the version of its bytes, the second number, and what is in it."""

    member_id: str
    version: int
    commonly_supported_version: int
    content: Content
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderDecision:
    """What the leader does with the group.

    Attributes:
        version: what most answers are written in; 0 when the leader died.
        commonly_supported_version: their second number; unknown (-1) below version 3.
        answers: one for each member, in order of member id; none when the leader died.
        future_members: members whose used version is above what the leader reads.
        quarantined_members: members whose bytes the leader cannot read or believe.
        lowest_supported_version: over the members that can be read; unknown (-1) if one does
            not say.
        error_code: 0, or 3 when everybody gets an error.
        version_probing: a future member was answered, so a further rebalance will come.
        refusal: why the leader died, or None.
        rule, why: the row that fired and its sentence.
    """

    version: int
    commonly_supported_version: int
    answers: tuple[Answer, ...]
    future_members: tuple[str, ...]
    quarantined_members: tuple[str, ...]
    lowest_supported_version: int
    error_code: int
    version_probing: bool
    refusal: Refuse | None
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersions:
    """What the rows of the table may look at; versions as the leader sees them."""

    release: Release
    members: tuple[MemberVersions, ...]
    future: tuple[MemberVersions, ...]
    quarantined: tuple[MemberVersions, ...]
    lowest_used: int
    lowest_supported: int

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


_OWN_LATEST: Final = "own latest"
_LOWEST: Final = "lowest"


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
    future_numbers: str = _LOWEST
    second_number: str = _LOWEST
    fixed_version: int | None = None


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
_MIXTURE_TEXT: Final = (
    "a future subscription (version {future_version}) and one from before 2.0 (version"
    " {lowest_used}) are in the group at the same time"
)


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
        why="unable to decode subscription data: version={undecodable}; {remedy}",
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
        name="always version 2",
        models=frozenset({LeaderModel.ALWAYS_VERSION_2}),
        holds=lambda _: True,
        fixed_version=2,
        why="a leader of this release answers everybody in version 2, whatever they wrote"
        " (KAFKA-6054)",
    ),
    LeaderRule(
        name="empty answer to future members, own number",
        models=frozenset({LeaderModel.EMPTY_AND_OWN}),
        holds=lambda g: bool(g.future),
        others_get=Content.PREVIOUS,
        future_get=Content.EMPTY,
        future_numbers=_OWN_LATEST,
        second_number=_OWN_LATEST,
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
        future_numbers=_OWN_LATEST,
        second_number=_OWN_LATEST,
        why="{future} wrote above {latest}: an empty answer to them in the leader's latest version,"
        " a regular answer in {lowest_used} to the others",
    ),
    LeaderRule(
        name="lowest used version, own number",
        models=_OWN_NUMBER,
        holds=lambda _: True,
        second_number=_OWN_LATEST,
        why="version {lowest_used} is the lowest that anybody wrote; the second number is the"
        " leader's own {latest}",
    ),
    LeaderRule(
        name="future members answered in the lowest version",
        models=_ALL,
        holds=lambda g: bool(g.future),
        why="{future} wrote above {latest}: tasks for everybody in version {lowest_used}, the"
        " lowest that anybody wrote; the second number {lowest_supported} says how far all can go",
    ),
    LeaderRule(
        name="lowest used version",
        models=_ALL,
        holds=lambda _: True,
        why="version {lowest_used} is the lowest that anybody wrote; the second number"
        " {lowest_supported} says how far all can go",
    ),
)


def decide_answers(release: Release, members: Sequence[MemberVersions]) -> LeaderDecision:
    """Return how a leader of ``release`` answers the group.

    Args:
        release: the leader's program; its model picks the rows.
        members: every member's versions, the leader's own among them, in any order.

    Returns:
        The decision: answers in order of member id, or the refusal of a leader that dies.
    """
    group = _group_versions(release, members)
    model = release.leader_model
    rule = next(rule for rule in LEADER_RULES if model in rule.models and rule.holds(group))
    why = _sentence(rule, group)
    if rule.verdict is Verdict.DIES:
        return _decision(group, rule, why, version=0, common=UNKNOWN_VERSION)
    if rule.verdict is Verdict.ERROR_TO_ALL:
        # Kafka writes errors in the leader's latest version, which older members cannot read.
        return _decision(group, rule, why, version=group.latest, common=group.latest)
    version = group.lowest_used if rule.fixed_version is None else rule.fixed_version
    common = group.latest if rule.second_number == _OWN_LATEST else group.lowest_supported
    return _decision(group, rule, why, version=version, common=_on_the_wire(version, common))


def _on_the_wire(version: int, common: int) -> int:
    """Return the second number as the reader sees it: versions 1 and 2 have no room for it."""
    return common if version >= EARLIEST_PROBEABLE_VERSION else UNKNOWN_VERSION


def _group_versions(release: Release, members: Sequence[MemberVersions]) -> GroupVersions:
    everyone = tuple(sorted(members, key=lambda member: member.member_id))
    readable = tuple(m for m in everyone if not _is_quarantined(release, m))
    latest = release.latest_version
    lowest_used = min((latest, *(m.used_version for m in readable)))
    known = greatest_known_version(release.known_versions, at_most=lowest_used)
    return GroupVersions(
        release=release,
        members=readable,
        future=tuple(m for m in readable if m.used_version > latest),
        quarantined=tuple(m for m in everyone if m not in readable),
        lowest_used=lowest_used if known is None else known,
        lowest_supported=min((latest, *(m.supported_as_seen for m in readable))),
    )


def _is_quarantined(release: Release, member: MemberVersions) -> bool:
    """Tell whether the leader cannot read the member's bytes, or cannot believe its numbers."""
    checks = release.is_native or release.order >= _CHECKS_SUPPORTED_SINCE
    return member.quarantined or (checks and member.contradicts_itself)


def _names(members: Sequence[MemberVersions]) -> str:
    return ", ".join(member.member_id for member in members)


def _sentence(rule: LeaderRule, group: GroupVersions) -> str:
    """Fill in the row's sentence."""
    return rule.why.format(
        future=_names(group.future),
        future_version=max((m.used_version for m in group.future), default=UNKNOWN_VERSION),
        quarantined=_names(group.quarantined),
        undecodable=max(group.undecodable, default=UNKNOWN_VERSION),
        remedy=_remedy(group),
        latest=group.latest,
        lowest_used=group.lowest_used,
        lowest_supported=group.lowest_supported,
    )


def _remedy(group: GroupVersions) -> str:
    """Say what lets newer members join a leader that does not know their version."""
    return (
        f"set upgrade.from={group.release.series} on the newer members for a first rolling bounce,"
        " and take it out again in a second one"
    )


def _decision(
    group: GroupVersions, rule: LeaderRule, why: str, *, version: int, common: int
) -> LeaderDecision:
    dies = rule.verdict is Verdict.DIES
    error = rule.verdict is Verdict.ERROR_TO_ALL
    everyone = sorted((*group.members, *group.quarantined), key=lambda member: member.member_id)
    return LeaderDecision(
        version=version,
        commonly_supported_version=common,
        answers=()
        if dies
        else tuple(
            _answer(group, rule, why, member, version=version, common=common) for member in everyone
        ),
        future_members=tuple(member.member_id for member in group.future),
        quarantined_members=tuple(member.member_id for member in group.quarantined),
        lowest_supported_version=group.lowest_supported,
        error_code=ASSIGNMENT_ERROR if error else 0,
        version_probing=bool(group.future) and not (dies or error),
        refusal=Refuse(rule=rule.name, why=why) if dies else None,
        rule=rule.name,
        why=why,
    )


def _answer(
    group: GroupVersions,
    rule: LeaderRule,
    why: str,
    member: MemberVersions,
    *,
    version: int,
    common: int,
) -> Answer:
    """Return one member's answer under the row that fired."""
    name = rule.name
    content = rule.others_get
    if member in group.quarantined:
        content, name = Content.PREVIOUS, "quarantined"
        why = f"the subscription of {member.member_id} cannot be read: it keeps what it owns"
    elif rule.verdict is Verdict.ERROR_TO_ALL:
        content = Content.ERROR
    elif member in group.future:
        content = rule.future_get
        if rule.future_numbers == _OWN_LATEST:
            version = common = group.latest
    return Answer(
        member_id=member.member_id,
        version=version,
        commonly_supported_version=common,
        content=content,
        rule=name,
        why=why,
    )
