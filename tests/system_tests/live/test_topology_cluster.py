"""What the driver of a changed topology asks the broker."""

import pytest

from assignor.adapters.admin import Target, open_admin, set_offsets
from encoding import TopicPartition
from system_tests.live.topologies.cluster import open_cluster

pytestmark = pytest.mark.usefixtures("clock")

EXTRA, WORDS = TopicPartition("extra", 0), TopicPartition("words", 0)


def test_end_offsets_are_those_of_the_read_topics_not_of_all_committed_ones():
    """A removed topic keeps its committed offsets, and nobody commits it further."""
    with open_cluster("group", None) as cluster:
        cluster.create(["extra", "words"], 1)
        with open_admin(Target(servers=(cluster.servers,))) as admin:
            set_offsets(admin, "group", {EXTRA: 0})
        assert cluster.end_offsets({"words"}) == {WORDS: 0}
        assert cluster.committed() == {EXTRA: 0}
