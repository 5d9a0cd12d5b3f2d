"""Native features: levels that the members of a group finalize, beyond Kafka's features.

The levels of ``assignment.protocol`` are the wire versions, so a finalized level is an upper bound
for what members write. ``persistent.metadata.version`` is KIP-384's setting as a level. The levels
of ``topology.version`` are the versions that an application gives its topology.
"""

from collections.abc import Sequence
from typing import Final

from encoding import KAFKA_VERSIONS, KNOWN_VERSIONS
from probing.features.table import Feature, FeatureTable, Level
from probing.versions import ASSIGNMENT_PROTOCOL

TASK_PLACEMENT: Final = "task.placement"
PERSISTENT_METADATA: Final = "persistent.metadata.version"
TOPOLOGY_VERSION: Final = "topology.version"

_FIRST_RELEASE: Final = "0.1"


def _protocol(versions: Sequence[int]) -> Feature:
    return Feature(
        name=ASSIGNMENT_PROTOCOL,
        levels=tuple(
            Level(
                number=version,
                name=f"v{version}",
                release=_FIRST_RELEASE,
                changed=(
                    f"members write Kafka's layout {version}"
                    if version in KAFKA_VERSIONS
                    else f"members write the native layout {version}"
                ),
                # Each rebalance writes all blobs again; no old blob is read later.
                compatible_back=True,
            )
            for version in sorted(versions)
        ),
        governs="the highest version in which members write subscriptions and leaders answer",
        is_always_on=True,
    )


_PLACEMENT: Final = Feature(
    name=TASK_PLACEMENT,
    levels=(
        Level(
            number=1,
            name="kafka",
            release=_FIRST_RELEASE,
            changed="tasks go where Kafka's high availability assignor puts them (KIP-441)",
            compatible_back=True,
        ),
        Level(
            number=2,
            name="even",
            release=_FIRST_RELEASE,
            changed="tasks are placed by the strategy in the leader's settings",
            compatible_back=True,
        ),
    ),
    governs="which strategies a leader may place tasks with",
    is_always_on=True,
)

_PERSISTED: Final = Feature(
    name=PERSISTENT_METADATA,
    levels=(
        Level(
            number=1,
            name="1",
            release=_FIRST_RELEASE,
            changed="the first format of every file and record that outlives a member",
            compatible_back=True,
        ),
        Level(
            number=2,
            name="2",
            release=_FIRST_RELEASE,
            changed="the second format: programs that know only the first cannot read it",
            compatible_back=False,
        ),
    ),
    governs="the formats in which stores are written; all known ones are read (KIP-384)",
    is_always_on=True,
)

_TOPOLOGY: Final = Feature(
    name=TOPOLOGY_VERSION,
    levels=(),
    governs="which version of the application's topology a group runs, of those that all members"
    " carry (`topologies=[...]`)",
    application="version",
)


def native_features(versions: Sequence[int] = KNOWN_VERSIONS) -> FeatureTable:
    """Return the native features of a program with these versions of the assignment protocol."""
    return FeatureTable(features=(_protocol(versions), _PERSISTED, _PLACEMENT, _TOPOLOGY))


NATIVE_FEATURES: Final = native_features()
"""The native features and all their released levels."""
