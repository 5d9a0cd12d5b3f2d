"""What brokers of a release do with streams groups (KIP-1071), from `changes/changes.toml`."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from probing import Release, ReleaseError, find_release
from system_tests.plan.changes import STREAMS_BROKERS
from system_tests.plan.uses import Use


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """What brokers from a release on do with streams groups.

    Attributes:
        since: the first release; the row holds until the next one.
        refused: why a group cannot move there; empty if it can.
        assignor: the broker's assignor.
        streams_version: level of the feature `streams.version` in a new cluster.
        uses_offsets: version 1 of the protocol's messages: members of the release and later ones
            report the offsets of their state, and may be static (KAFKA-20719, KIP-1071).
    """

    since: str
    refused: str = ""
    assignor: str = ""
    streams_version: int = 0
    uses_offsets: bool = False


BROKERS: Final = tuple(BrokerRow(**row) for row in STREAMS_BROKERS)
FIRST_BROKERS: Final = next(row.since for row in BROKERS if not row.refused)
"""The first brokers that are not refused."""
FIRST_STATIC: Final = find_release(next(row.since for row in BROKERS if row.uses_offsets)).series
"""The first series whose members and brokers let static members move."""


def broker_row(release: Release) -> BrokerRow:
    """Return the last row that holds for brokers of a release.

    Raises:
        ReleaseError: it is not a release of Kafka.
    """
    if release.is_native:
        raise ReleaseError(f"{release.name} is not a release of brokers; give one, as 4.3")
    return next(row for row in reversed(BROKERS) if find_release(row.since).order <= release.order)


def reports_offsets(members: Release, brokers: Release) -> bool:
    """Return whether both speak version 1 of the protocol's messages, with offsets and static ids.

    Raises:
        ReleaseError: `brokers` is not a release of Kafka.
    """
    row = broker_row(brokers)
    return row.uses_offsets and members.order >= find_release(row.since).order


def static_members_need(uses: Collection[str]) -> str:
    """Return what static members need before brokers go back, as a clause; empty without them."""
    if Use.STATIC not in uses:
        return ""
    return (
        f"; before brokers go below {FIRST_STATIC}, bounce the members and start each without"
        " group.instance.id, or take the group back to the classic protocol: such brokers answer"
        " static members with INVALID_REQUEST, which ends them"
    )
