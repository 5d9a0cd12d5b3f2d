"""Live groups that end when a feature of the cluster is disabled."""

from collections.abc import Iterable, Iterator
from typing import Final

from assignor.cli.features.level_admins import ClusterLevelAdmin, LevelAdmin
from assignor.inspection import DescribedGroup, few
from probing.features import FeatureUpdate

_TYPE_BY_FEATURE: Final = {
    "streams.version": "streams",
    "group.version": "consumer",
    "share.version": "share",
}
"""Feature -> the type of the groups that exist with it only, as ListGroups spells it."""
_WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


def dependents(groups: Iterable[DescribedGroup], feature: str) -> list[str]:
    """Return the names of live groups whose protocol a feature provides."""
    kind = _TYPE_BY_FEATURE.get(feature)
    return [
        group.group_id
        for group in groups
        if kind is not None and group.group_type == kind and group.state not in _WITHOUT_MEMBERS
    ]


def objections(admin: LevelAdmin, updates: Iterable[FeatureUpdate]) -> Iterator[str]:
    """Yield a sentence for each update that ends live groups of a cluster.

    With the streams protocol, members of 4.3.1 ended 3 s after streams.version was disabled
    (UnsupportedVersionException).
    """
    disabled = [u.feature for u in updates if u.level <= 0 and u.feature in _TYPE_BY_FEATURE]
    if not disabled or not isinstance(admin, ClusterLevelAdmin):
        return
    groups = admin.groups()
    for feature in disabled:
        names = dependents(groups, feature)
        if names:
            yield (
                f"{feature} is not disabled: {len(names)} live group{'s' * (len(names) > 1)} of"
                f" those that this user may describe need it ({few(names)}), and their members end"
                " within seconds; stop them first, or give --force"
            )
