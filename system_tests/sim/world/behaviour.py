"""How a release behaves in a group, beside version probing: one row for each release and pin.

`probing` knows how leaders and members treat versions. A simulation also needs how a member forces
a rebalance, and what the consumer of that release sends and waits for. These facts follow from the
release's order and from the issues that are open in it.
"""

from dataclasses import dataclass, replace
from functools import cache

from probing import (
    LeaderModel,
    MemberModel,
    RebalanceProtocol,
    Release,
    ReleaseError,
    find_release,
)

_KIP_345 = (2, 3, 0)
_KIP_429 = (2, 4, 0)
_KIP_441 = (2, 6, 0)
_KIP_568 = (2, 6, 0)
_KIP_394 = (2, 2, 0)
_KIP_735 = (3, 0, 0)
_KIP_814 = (3, 2, 0)
_BY_THE_TEXT = "-text"
LATER = "next-later"
_TEXT_SINCE, _TEXT_UNTIL = (2, 0), (2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How a program that was started with these settings behaves.

    Attributes:
        release: the program.
        upgrade_from: the setting.
        may_be_static: its members may carry a group.instance.id (KIP-345).
        cooperative: revokes only what moves (KIP-429); eager members give up everything first.
        names_given_up_tasks: writes tasks that it gave up in order to join as its former active
            ones. Since offset sums (KIP-441) eager members of Kafka write where the state of those
            stands, so that leaders of version 6 and below take them for standby tasks.
        leaves_on_close: sends LeaveGroup when it stops; Kafka Streams never does
            (internal.leave.group.on.close), so its members stay until their session runs out.
        forces_by_leaving: forces a rebalance by unsubscribing and subscribing (before KIP-568).
        fires_during_rebalance: a follow-up does not wait for a running rebalance (KAFKA-14382).
        needs_known_member_id: joins twice, first for a member id (KIP-394).
        may_skip_assignment: understands that a leader may have nothing to compute (KIP-814).
        protocol_version: of the consumer protocol; owned partitions from 1 on.
        session_timeout_ms, heartbeat_ms: the consumer's defaults (KIP-735).
    """

    release: Release
    upgrade_from: str | None
    may_be_static: bool
    cooperative: bool
    names_given_up_tasks: bool
    leaves_on_close: bool
    forces_by_leaving: bool
    fires_during_rebalance: bool
    needs_known_member_id: bool
    may_skip_assignment: bool
    protocol_version: int
    session_timeout_ms: int
    heartbeat_ms: int

    @property
    def versions(self) -> tuple[int, ...]:
        """Every version that it reads and writes, Kafka's and native ones."""
        return (*self.release.known_versions, *self.release.native_versions)


@cache
def find_program(text: str) -> Release:
    """Return the release of that name.

    Besides the releases of the table there are programs that were never shipped: `2.3.1-text` is
    2.3.1 with a leader and members as the text of KIP-268 describes them, for 2.0 to 2.3; `LATER`
    is a release after `next` that does not support the first versions.

    Raises:
        ReleaseError: no such release, or none that the text speaks of.
    """
    if text == LATER:
        return replace(find_release("next"), name=LATER, known_versions=(11,), latest_version=11)
    if not text.endswith(_BY_THE_TEXT):
        return find_release(text)
    shipped = find_release(text.removesuffix(_BY_THE_TEXT))
    if not _TEXT_SINCE <= shipped.order < _TEXT_UNTIL:
        raise ReleaseError(
            f"{text!r} does not exist: the text of KIP-268 stands for 2.0 to 2.3; give"
            f" {shipped.name}, or one of those with {_BY_THE_TEXT}"
        )
    return replace(
        shipped,
        name=f"{shipped.name}{_BY_THE_TEXT}",
        leader_model=LeaderModel.KIP_TEXT,
        member_model=MemberModel.KIP_TEXT,
    )


@cache
def behaviour_of(
    release_name: str,
    upgrade_from: str | None,
    *,
    native_cooperative: bool = False,
    session_timeout_ms: int | None = None,
) -> Behaviour:
    """Return the row of a release that was started with `upgrade_from`.

    Args:
        release_name: of a release, or of a program that was never shipped.
        upgrade_from: the setting.
        native_cooperative: native members are cooperative, unless a pin keeps them eager.
        session_timeout_ms: None: the release's default.

    Raises:
        ReleaseError: no such release, or the value is unknown, refused or fatal there.
    """
    release = find_program(release_name)
    row = release.started_with(upgrade_from)
    protocol = release.rebalance_protocol if row is None else row.rebalance_protocol
    if release.is_native:
        is_free = row is None or protocol is RebalanceProtocol.COOPERATIVE
        is_cooperative = native_cooperative and is_free
    else:
        is_cooperative = protocol is RebalanceProtocol.COOPERATIVE
    order = release.order
    return Behaviour(
        release=release,
        upgrade_from=upgrade_from,
        may_be_static=order >= _KIP_345,
        cooperative=is_cooperative,
        names_given_up_tasks=order < _KIP_441 or release.is_native,
        leaves_on_close=release.is_native,
        forces_by_leaving=order < _KIP_568,
        fires_during_rebalance="KAFKA-14382" in release.open_issues,
        needs_known_member_id=order >= _KIP_394,
        may_skip_assignment=order >= _KIP_814,
        protocol_version=1 if order >= _KIP_429 else 0,
        session_timeout_ms=session_timeout_ms or (45_000 if order >= _KIP_735 else 10_000),
        heartbeat_ms=3_000,
    )
