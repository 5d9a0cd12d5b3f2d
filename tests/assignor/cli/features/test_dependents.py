"""Live groups that need a feature of the cluster."""

import pytest

from assignor.cli.features.dependents import objections
from assignor.cli.features.level_admins import ClusterLevelAdmin
from assignor.inspection import DescribedGroup
from probing.features import FeatureUpdate, UpdateKind


class Cluster(ClusterLevelAdmin):
    """A cluster with a group of each type, live and empty."""

    def __init__(self):
        pass

    def groups(self):
        return [
            DescribedGroup(group_id=f"{kind}-{state}", state=state, group_type=kind)
            for kind in ("classic", "consumer", "share", "streams")
            for state in ("Stable", "Empty")
        ]


def objections_to(feature, level):
    update = FeatureUpdate(feature=feature, level=level, kind=UpdateKind.SAFE_DOWNGRADE)
    return " ".join(objections(Cluster(), [update]))


@pytest.mark.parametrize(
    ("feature", "kind"),
    [("streams.version", "streams"), ("group.version", "consumer"), ("share.version", "share")],
)
def test_live_groups_of_the_feature_are_named_and_no_others(feature, kind):
    sentence = objections_to(feature, 0)
    assert f"{feature} is not disabled: 1 live group" in sentence
    assert f"({kind}-Stable)" in sentence


@pytest.mark.parametrize(("feature", "level"), [("share.version", 1), ("metadata.version", 0)])
def test_other_changes_have_no_objection(feature, level):
    assert objections_to(feature, level) == ""
