"""Level sources for a member: its group's feature log, or a feature of the cluster.

Each call opens and closes a client; a member calls its source once a minute.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from assignor.adapters.admin.client import Target, open_admin
from assignor.adapters.admin.features import read_features
from assignor.adapters.admin.level_topic import FeatureTopic, ReachedTopic
from assignor.logs import line_logger
from probing.features import FinalizedLevels, NodeSupport
from probing.topologies import Reached

_log = line_logger(__name__)
_NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


class GroupLevels:
    """The levels that `assignor features --group` finalizes, in the group's feature log.

    Args:
        bootstrap_servers: `host:port`, comma separated.
        group: the group id.
        settings: security settings for a kafka-python client.
        timeout_ms: time limit of one call.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        *,
        settings: Mapping[str, Any] = _NO_SETTINGS,
        timeout_ms: int = 10_000,
    ) -> None:
        self._target = _target(bootstrap_servers, settings, timeout_ms)
        self._group = group
        # Method -> warnings of its last call, so that each is logged once.
        self._logged: dict[str, frozenset[str]] = {}

    def __call__(self) -> FinalizedLevels:
        """Return the group's finalized levels; log each record that is ignored once.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
            StoreError: a later release wrote the log.
        """
        with open_admin(self._target) as admin:
            view = FeatureTopic(admin, self._group).look()
        self._log_new("levels", view.warnings)
        return view.state.levels

    def raise_minimums(self, members: Sequence[NodeSupport]) -> None:
        """Raise each minimum that all members support; only the group's leader calls this.

        Args:
            members: every member of the group, with what it supports.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
            StoreError: a later release wrote the log, or an operator changed it at the same time.
        """
        with open_admin(self._target) as admin:
            FeatureTopic(admin, self._group).raise_minimums(members)

    def reached(self) -> Mapping[bytes, Reached]:
        """Return the reached versions of the topology that the group's topic keeps.

        Records of a later release are left out. All entries are returned, those that do not concern
        the group among them. Each record that is ignored is logged once.

        Raises:
            BrokerError, NotAuthorized: as when it is called.
        """
        with open_admin(self._target) as admin:
            view = ReachedTopic(admin, self._group).look()
        self._log_new("reached", view.warnings)
        return view.memory

    def remember_reached(self, memory: Mapping[bytes, Reached]) -> None:
        """Add to the reached versions in the topic; only the group's leader calls this.

        Args:
            memory: fingerprint of a form -> reached version; the greater entry stays.

        Raises:
            BrokerError, NotAuthorized: as when it is called.
            StoreError: a record of the topic has a layout of a later release.
        """
        with open_admin(self._target) as admin:
            ReachedTopic(admin, self._group).remember(memory)

    def _log_new(self, method: str, warnings: Sequence[str]) -> None:
        for sentence in sorted({*warnings} - self._logged.get(method, frozenset())):
            _log.warning("%s", sentence)
        self._logged[method] = frozenset(warnings)


class ClusterFeature:
    """Group levels that follow a feature of the brokers (KIP-584, features used by clients).

    Args:
        bootstrap_servers: `host:port`, comma separated.
        feature: feature of the cluster, such as `transaction.version`.
        levels: level of that feature -> levels of native features. The entry with the highest
            reached level applies; below all entries nothing is finalized.
        settings: security settings for a kafka-python client.
        timeout_ms: time limit of one call.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        feature: str,
        levels: Mapping[int, Mapping[str, int]],
        *,
        settings: Mapping[str, Any] = _NO_SETTINGS,
        timeout_ms: int = 10_000,
    ) -> None:
        self._target = _target(bootstrap_servers, settings, timeout_ms)
        self._feature = feature
        self._levels = {level: dict(group_levels) for level, group_levels in levels.items()}

    def __call__(self) -> FinalizedLevels:
        """Return the group's levels, with the epoch of the cluster's features.

        Raises:
            BrokerError, NotAuthorized: the cluster does not answer, or not to this user.
        """
        with open_admin(self._target) as admin:
            features = read_features(admin)
        now = features.finalized.level_of(self._feature)
        reached = max((level for level in self._levels if level <= now), default=None)
        return FinalizedLevels(
            levels={} if reached is None else self._levels[reached], epoch=features.finalized.epoch
        )


def _target(servers: str, settings: Mapping[str, Any], timeout_ms: int) -> Target:
    names = tuple(name.strip() for name in servers.split(",") if name.strip())
    return Target(servers=names, settings=settings, timeout_ms=timeout_ms)
