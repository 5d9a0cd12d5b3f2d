"""Kafka's features and their levels as released, one row per level.

Numbers, names and ``compatible_back`` come from the released classes (3.9.2, 4.0.2, 4.1.2, 4.2.2, 4.3.1, 4.4.0);
supported ranges also from the tags of 3.3 to 3.8. ``compatible_back`` of metadata.version is
Kafka's "metadata did not change". Unreleased levels that 3.9 and earlier knew are left out.
"""

from dataclasses import dataclass
from typing import Final

from probing.features.levels import FeatureError, LevelRange
from probing.features.table import Feature, FeatureTable, Level

METADATA_VERSION: Final = "metadata.version"
CONTROLLERS_REGISTER_SINCE: Final = 15
"""From this metadata.version on, controllers register their supported ranges (KIP-919)."""

_LEVELS_ARE_LOGGED_SINCE: Final = 4

# number, name, compatible back, what it changed
_METADATA_ROWS: Final = (
    (1, "3.0-IV1", False, "the first level: what a preview cluster has (KIP-734 on the wire)"),
    (2, "3.1-IV0", True, "topic ids in Fetch (KIP-516)"),
    (3, "3.2-IV0", False, "recovery of a leader after an unclean election (KIP-704)"),
    (4, "3.3-IV0", True, "metadata.version is a record of the log (KIP-778)"),
    (5, "3.3-IV1", False, "no-op records, to measure the log's lag (KIP-835)"),
    (6, "3.3-IV2", False, "one record for every change of a broker's registration"),
    (7, "3.3-IV3", False, "registrations say that a broker is shutting down (KIP-841)"),
    (8, "3.4-IV0", False, "the move from ZooKeeper (KIP-866)"),
    (9, "3.5-IV0", True, "tiered storage (KIP-405)"),
    (10, "3.5-IV1", True, "Fetch names the epoch of a replica (KIP-903)"),
    (11, "3.5-IV2", False, "SCRAM credentials (KIP-900)"),
    (12, "3.6-IV0", True, "no new leader epoch when a replica leaves the ISR (KAFKA-15021)"),
    (13, "3.6-IV1", False, "transactions of metadata records (KIP-868)"),
    (14, "3.6-IV2", False, "delegation tokens"),
    (15, "3.7-IV0", False, "controllers register what they support (KIP-919)"),
    (16, "3.7-IV1", True, "nothing: reserved"),
    (17, "3.7-IV2", False, "several log directories in a broker (KIP-858)"),
    (18, "3.7-IV3", True, "nothing: reserved"),
    (19, "3.7-IV4", True, "Produce and Fetch name the new leader (KIP-951)"),
    (20, "3.8-IV0", True, "nothing: the number of the release"),
    (21, "3.9-IV0", True, "the latest offset in remote storage (KIP-1005)"),
    (22, "4.0-IV0", True, "new clusters have group.version 1 (KIP-848)"),
    (23, "4.0-IV1", False, "eligible leader replicas may be kept (KIP-966)"),
    (24, "4.0-IV2", True, "new clusters have transaction.version 2 (KIP-890)"),
    (25, "4.0-IV3", True, "offsets of remote storage without blocking (KIP-1075)"),
    (26, "4.1-IV0", True, "new clusters have eligible.leader.replicas.version 1 (KIP-966)"),
    (27, "4.1-IV1", True, "replicas fetch with the high watermark (KIP-1166)"),
    (28, "4.2-IV0", True, "new clusters have share.version 1 (KIP-932)"),
    (29, "4.2-IV1", True, "new clusters have streams.version 1 (KIP-1071)"),
    (30, "4.3-IV0", False, "log directories that take no new partition (KIP-1066)"),
    (31, "4.4-IV0", True, "new clusters have share.version 2 (KIP-1191)"),
    (32, "4.4-IV1", False, "hosts of ACLs may be networks in CIDR notation"),
    (33, "4.4-IV2", False, "controllers may be unregistered"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRelease:
    """Supported ranges of one series of brokers and controllers.

    Attributes:
        series: such as ``3.9``.
        metadata: lowest and highest metadata.version; (1, 1) for 3.0 to 3.2, which do not know the
            feature and which controllers treat as level 1.
        others: highest level of each other feature; the lowest is 0, off.
    """

    series: str
    metadata: tuple[int, int]
    others: tuple[tuple[str, int], ...] = ()

    @property
    def ranges(self) -> dict[str, LevelRange]:
        """Return the ranges that such a node advertises, by feature."""
        low, high = self.metadata
        others = {name: LevelRange(min=1, max=top, can_be_off=True) for name, top in self.others}
        return {METADATA_VERSION: LevelRange(min=low, max=high), **others}


_FOUR_0: Final = (
    ("eligible.leader.replicas.version", 1),
    ("group.version", 1),
    ("kraft.version", 1),
    ("transaction.version", 2),
)
_FOUR_1: Final = (*_FOUR_0, ("share.version", 1))
_FOUR_2: Final = (*_FOUR_1, ("streams.version", 1))
_FOUR_4: Final = (*_FOUR_0, ("share.version", 2), ("streams.version", 1))

KAFKA_RELEASES: Final = (
    KafkaRelease(series="3.0", metadata=(1, 1)),
    KafkaRelease(series="3.1", metadata=(1, 1)),
    KafkaRelease(series="3.2", metadata=(1, 1)),
    KafkaRelease(series="3.3", metadata=(1, 7)),
    KafkaRelease(series="3.4", metadata=(1, 8)),
    KafkaRelease(series="3.5", metadata=(1, 11)),
    KafkaRelease(series="3.6", metadata=(1, 14)),
    KafkaRelease(series="3.7", metadata=(1, 19)),
    KafkaRelease(series="3.8", metadata=(1, 20)),
    KafkaRelease(series="3.9", metadata=(1, 21), others=(("kraft.version", 1),)),
    KafkaRelease(series="4.0", metadata=(7, 25), others=_FOUR_0),
    KafkaRelease(series="4.1", metadata=(7, 27), others=_FOUR_1),
    KafkaRelease(series="4.2", metadata=(7, 29), others=_FOUR_2),
    KafkaRelease(series="4.3", metadata=(7, 30), others=_FOUR_2),
    KafkaRelease(series="4.4", metadata=(7, 33), others=_FOUR_4),
)
"""Every series with KRaft, oldest first."""


def find_kafka_release(series: str) -> KafkaRelease:
    """Return the supported ranges of a series; a patch (``3.9.1``) stands for its series.

    Raises:
        FeatureError: the series had no KRaft, or is unknown.
    """
    wanted = ".".join(series.split(".")[:2])
    for release in KAFKA_RELEASES:
        if release.series == wanted:
            return release
    known = f"{KAFKA_RELEASES[0].series} to {KAFKA_RELEASES[-1].series}"
    raise FeatureError(f"release {series!r} has no finalized levels; choose from {known}")


def _metadata() -> Feature:
    return Feature(
        name=METADATA_VERSION,
        levels=tuple(
            Level(
                number=number,
                name=name,
                release=name.partition("-")[0],
                changed=changed,
                compatible_back=back,
            )
            for number, name, back, changed in _METADATA_ROWS
        ),
        governs="records of the metadata log and the requests between brokers and controllers",
        is_always_on=True,
        lowest_settable=_LEVELS_ARE_LOGGED_SINCE,
    )


def _plain(name: str, governs: str, *rows: tuple[str, str], can_be_lowered: bool = True) -> Feature:
    """Return a feature whose levels 1, 2, ... are the rows (release, what changed)."""
    first = (METADATA_VERSION, _LEVELS_ARE_LOGGED_SINCE)
    elr = (METADATA_VERSION, 23)
    required = elr if name.startswith("eligible") else first
    return Feature(
        name=name,
        levels=tuple(
            Level(
                number=number,
                name=str(number),
                release=release,
                changed=changed,
                compatible_back=can_be_lowered,
                requires=(required,),
            )
            for number, (release, changed) in enumerate(rows, start=1)
        ),
        governs=governs,
        can_be_lowered=can_be_lowered,
    )


KAFKA_FEATURES: Final = FeatureTable(
    features=(
        _plain(
            "eligible.leader.replicas.version",
            "who may lead a partition when its in-sync replicas are gone",
            ("4.0", "eligible leader replicas are kept and used (KIP-966)"),
        ),
        _plain(
            "group.version",
            "protocols of the group coordinator",
            ("4.0", "the consumer rebalance protocol (KIP-848)"),
        ),
        _plain(
            "kraft.version",
            "how the quorum of controllers is described",
            ("3.9", "voters are records, and may be added and removed (KIP-853)"),
            can_be_lowered=False,
        ),
        _metadata(),
        _plain(
            "share.version",
            "share groups",
            ("4.1", "queues by share groups (KIP-932)"),
            ("4.4", "dead-letter queues of share groups (KIP-1191)"),
        ),
        _plain(
            "streams.version",
            "streams groups",
            ("4.2", "the streams rebalance protocol (KIP-1071)"),
        ),
        _plain(
            "transaction.version",
            "the log and protocol of transactions",
            ("4.0", "records of transactions with optional fields (KIP-890)"),
            ("4.0", "a new producer epoch for every transaction (KIP-890)"),
        ),
    )
)
"""Kafka's features and all their released levels."""

# (feature, level, metadata.version from which on a new cluster gets it)
_BOOTSTRAP_ROWS: Final = (
    ("kraft.version", 1, 21),
    ("group.version", 1, 22),
    ("transaction.version", 1, 24),
    ("transaction.version", 2, 24),
    ("eligible.leader.replicas.version", 1, 26),
    ("share.version", 1, 28),
    ("streams.version", 1, 29),
    ("share.version", 2, 31),
)


def default_levels(metadata_version: int) -> dict[str, int]:
    """Return the levels of a new cluster at a metadata.version, as ``--release-version`` sets them.

    These are metadata.version itself and, of every other feature, the highest default level.
    """
    # Rows of one feature ascend, so the last that holds is the highest.
    others = {name: level for name, level, since in _BOOTSTRAP_ROWS if metadata_version >= since}
    return dict(sorted((others | {METADATA_VERSION: metadata_version}).items()))
