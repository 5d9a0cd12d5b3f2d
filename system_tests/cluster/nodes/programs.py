"""Programs of nodes: a series of Kafka, or one of two programs with a static setting.

The two are for KIP-584's migration from ``inter.broker.protocol.version`` to a feature flag.
``before`` knows no features and sends up to level 4. ``after`` sends up to level 6 and supports the
flag; it uses the flag if its setting is at least the migration version, 5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from probing.features import (
    KAFKA_FEATURES,
    METADATA_VERSION,
    Feature,
    FeatureTable,
    Level,
    LevelRange,
    find_kafka_release,
)
from system_tests.cluster.machines.content import KAFKA_CONTENT, ContentSchema, EntryKind

PROTOCOL_FLAG: Final = "inter.broker.protocol"
MIGRATION: Final = 5
_SPEAKS_BEFORE: Final = 4
_SPEAKS_AFTER: Final = 6

PROTOCOL_TABLE: Final = FeatureTable(
    features=(
        Feature(
            name=PROTOCOL_FLAG,
            levels=tuple(
                Level(
                    number=number,
                    name=str(number),
                    release="after",
                    changed=f"brokers speak protocol {number} to each other",
                    compatible_back=True,
                )
                for number in range(1, _SPEAKS_AFTER + 1)
            ),
            governs="protocol between brokers",
        ),
    )
)
_PROTOCOL_CONTENT: Final = ContentSchema(
    feature=PROTOCOL_FLAG,
    kinds=tuple(EntryKind(name=kind, since=0) for kind in ("topic", "broker", "config")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program.

    Attributes:
        name: series of Kafka, ``before`` or ``after``.
        ranges: supported range by feature.
        reads: the highest level of the governing feature that it understands from a peer.
    """

    name: str
    ranges: Mapping[str, LevelRange]
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Realm:
    """Properties of a whole cluster.

    Attributes:
        table: its features.
        schema: schema of its log.
        has_setting: nodes have a static setting (KIP-584's double roll).
        formatted: level that the directories were formatted with; None for a preview cluster.
    """

    table: FeatureTable
    schema: ContentSchema
    has_setting: bool = False
    formatted: int | None = None

    @property
    def governing(self) -> str:
        """The feature whose level decides what may be sent and logged."""
        return self.schema.feature


def kafka_realm(formatted: int | None) -> Realm:
    """Return the properties of a cluster of Kafka releases."""
    return Realm(table=KAFKA_FEATURES, schema=KAFKA_CONTENT, formatted=formatted)


PROTOCOL_REALM: Final = Realm(table=PROTOCOL_TABLE, schema=_PROTOCOL_CONTENT, has_setting=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a node is started: its program and its static setting, None if it has none."""

    program: str
    setting: int | None = None

    @property
    def is_migrated(self) -> bool:
        """Whether the node uses levels."""
        return self.setting is None or self.setting >= MIGRATION

    def __str__(self) -> str:
        return self.program if self.setting is None else f"{self.program} at {self.setting}"


_NOTHING: Final[Mapping[str, LevelRange]] = {}


@cache
def find_program(name: str) -> Program:
    """Return a program by its name.

    Raises:
        FeatureError: the name is unknown.
    """
    if name == "before":
        return Program(name=name, ranges=_NOTHING, reads=_SPEAKS_BEFORE)
    if name == "after":
        flag = LevelRange(min=1, max=_SPEAKS_AFTER, can_be_off=True)
        return Program(name=name, ranges={PROTOCOL_FLAG: flag}, reads=_SPEAKS_AFTER)
    ranges = find_kafka_release(name).ranges
    return Program(name=name, ranges=ranges, reads=ranges[METADATA_VERSION].max)
