"""State of a member, its start, and the two version numbers of its next subscription.

Finalized levels limit the version that a member writes. It adopts them from an answer, or from its
own poll just before it writes, so that ``levels`` always matches its last subscription.
"""

from dataclasses import dataclass, replace
from typing import Literal

from probing.features import (
    UNKNOWN_LEVELS,
    FinalizedLevels,
    LookNumbers,
    adopt_levels,
    decide_look,
    newest_levels,
)
from probing.member.events import Refuse, RejoinNow
from probing.member.level_cap import capped_version, protocol_level, unmet_levels
from probing.releases import MemberModel, Release, ReleaseError
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    NO_REBALANCE,
    START_VERSION,
    UNKNOWN_VERSION,
    greatest_known_version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """State of one member (one consumer, not one process).

    Attributes:
        release_name: for sentences.
        model: selects the decision tables.
        known_versions: every Kafka version that it reads and writes.
        used_version: the version of its next subscription.
        upgrade_from: the setting that it was started with, None if not set.
        native_versions: every native version that it reads and writes; empty for Kafka's members.
        pinned: ``upgrade_from`` pins the used version.
        next_rebalance_ms: when it wants to rejoin, ``NO_REBALANCE`` for never.
        rebalancing: a rebalance is running.
        levels: finalized levels that the member has adopted; they limit the version it writes.
        polled: the newest levels that its own polls found; adopted at its next subscription.
        refusal: set once the member cannot continue; later events then change nothing.
    """

    release_name: str
    model: MemberModel
    known_versions: tuple[int, ...]
    used_version: int
    upgrade_from: str | None = None
    native_versions: tuple[int, ...] = ()
    pinned: bool = False
    next_rebalance_ms: int = NO_REBALANCE
    rebalancing: bool = False
    levels: FinalizedLevels = UNKNOWN_LEVELS
    polled: FinalizedLevels = UNKNOWN_LEVELS
    refusal: Refuse | None = None

    @property
    def all_versions(self) -> tuple[int, ...]:
        """Return every version that the member reads and writes."""
        return (*self.known_versions, *self.native_versions)

    @property
    def known_levels(self) -> FinalizedLevels:
        """Return the newest finalized levels that the member knows, adopted or polled."""
        return newest_levels((self.levels, self.polled))

    @property
    def latest_version(self) -> int:
        """Return the highest Kafka version that the member reads and writes."""
        return max(self.known_versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionVersion:
    """The two numbers at the head of the next subscription, and what the trailer adds.

    Attributes:
        used: the version to write.
        latest_supported: the second number; unknown (-1) below version 3, which does not carry
            it. At most Kafka's newest version while ``used`` is a Kafka version, because a JVM
            leader may answer in any version up to the lowest supported one.
        native: the latest native version that the member reads; None for Kafka's members.
        pinned: ``upgrade.from`` pins ``used``; sent in the trailer.
    """

    used: int
    latest_supported: int
    native: int | None = None
    pinned: bool = False

    @property
    def has_trailer(self) -> bool:
        """Tell whether a native trailer follows the fields of a Kafka version."""
        return self.native is not None and self.used < EARLIEST_NATIVE_VERSION


def start_member(
    release: Release,
    *,
    upgrade_from: str | None = None,
    remembered_version: int | None = None,
    start_version: Literal["latest"] | None = None,
    levels: FinalizedLevels = UNKNOWN_LEVELS,
) -> MemberState:
    """Return a member of ``release`` that has just been started.

    Args:
        release: the program.
        upgrade_from: the setting's value; a value that pins takes precedence over everything else.
        remembered_version: the version last agreed, from the state directory of a native member.
            Versions 1 and 2 are ignored, otherwise a pin would survive its bounce. A native
            version stands for ``START_VERSION``, which every recent leader reads.
        start_version: "latest" starts a native member at its latest native version, as in
            KIP-268; this ends a JVM leader if another member writes version 1 or 2. None starts
            at ``START_VERSION``, or at the remembered version.
        levels: finalized levels that a native member remembers or is configured with. If it does
            not support them, the returned member is refused from the start.

    Raises:
        ReleaseError: the release does not know ``upgrade_from``, does not remember versions, or
            ``start_version`` is unknown.
    """
    if start_version not in (None, "latest"):
        raise ReleaseError(
            f"start_version={start_version!r} is unknown; set 'latest' or leave it out"
        )
    if remembered_version is not None and not release.is_native:
        raise ReleaseError(
            f"release {release.name} remembers no version over a restart; leave remembered_version"
            " out, or start a native member"
        )
    row = release.started_with(upgrade_from)
    pinned = row is not None and row.pinned_version is not None
    used_version = release.pinned_version(upgrade_from)
    if not pinned and start_version == "latest":
        used_version = release.latest_native_version or used_version
    elif not pinned and remembered_version is not None:
        is_native = remembered_version >= EARLIEST_NATIVE_VERSION
        at_most = START_VERSION if is_native else remembered_version
        known = greatest_known_version(release.known_versions, at_most=at_most)
        if known is not None and known >= EARLIEST_PROBEABLE_VERSION:
            used_version = known
    state = MemberState(
        release_name=release.name,
        model=release.member_model,
        known_versions=release.known_versions,
        used_version=used_version,
        upgrade_from=upgrade_from,
        native_versions=release.native_versions,
        pinned=pinned,
    )
    return go_by(state, levels) if release.is_native else state


def go_by(state: MemberState, levels: FinalizedLevels) -> MemberState:
    """Return the member after adopting the levels if they are newer, or refusing them.

    Before each subscription a member goes by the newest levels that its own polls found.
    """
    adopted = adopt_levels(state.levels, levels)
    if adopted == state.levels:
        return state
    unmet = unmet_levels(state.release_name, state.all_versions, adopted)
    if unmet is not None:
        return replace(state, refusal=Refuse(rule=unmet.rule, why=unmet.why))
    used = capped_version(state.all_versions, state.used_version, protocol_level(adopted))
    return replace(state, levels=adopted, used_version=used)


def subscription_version(state: MemberState) -> SubscriptionVersion | Refuse:
    """Return the two version numbers of the next subscription, or why the member cannot write one.

    A member whose used version is above its own latest cannot encode it (KAFKA-8649).
    """
    if state.refusal is not None:
        return state.refusal
    level = protocol_level(state.levels)
    latest_native = max(state.native_versions, default=None)
    if latest_native is not None and state.used_version in state.native_versions:
        supported = capped_version(state.native_versions, latest_native, level)
        return SubscriptionVersion(
            used=state.used_version, latest_supported=supported, native=latest_native
        )
    if state.used_version not in state.known_versions:
        return Refuse(
            rule="cannot write",
            why=f"the leader set version {state.used_version}, release {state.release_name} writes"
            f" up to {state.latest_version} (KAFKA-8649); upgrade this member, or bounce the leader"
            " to a release that answers with the lowest supported version",
        )
    probes = state.used_version >= EARLIEST_PROBEABLE_VERSION
    supported = capped_version(state.known_versions, state.latest_version, level)
    return SubscriptionVersion(
        used=state.used_version,
        latest_supported=supported if probes else UNKNOWN_VERSION,
        native=latest_native,
        pinned=state.pinned and bool(state.native_versions),
    )


def rejoin_for_levels(
    state: MemberState, found: FinalizedLevels, *, leads: bool, is_led_by_jvm: bool
) -> RejoinNow | None:
    """Return the rejoin of a member that found levels (KIP-584, T3); None if it has no need to ask.

    A native leader asks, since one rebalance informs the whole group. A JVM leader does not know
    levels; under it, each member that writes above the level asks for itself.

    Args:
        state: of the member. Levels that it knows already need no further rebalance.
        found: the newest levels of the member's own polls.
        leads: the member leads the generation.
        is_led_by_jvm: the member's last answer came from a JVM leader.
    """
    look = decide_look(LookNumbers(polled=found, adopted=state.known_levels))
    level = protocol_level(found)
    is_above = level is not None and state.used_version > level
    has_to_ask = leads or (is_led_by_jvm and is_above)
    if not (look.starts_rebalance and has_to_ask):
        return None
    return RejoinNow(used_version=state.used_version, rule=look.rule, why=look.why)
