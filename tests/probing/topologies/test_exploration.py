"""Every order of a rolling change with crashes; tests/planted/topologies.toml has its faults."""

import pytest

from probing.topologies import Carrier, joined_families
from tests.nightly import sample
from tests.probing.topologies.changes import CHAINED, CHANGES, ONE_TOPIC, TWO_TOPICS
from tests.probing.topologies.model import Model

REPORTED = {
    # Partitions of sources that one version alone reads.
    "source added",
    "source removed",
    "moved to a new source",
    "branch before a chain removed",
}


@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("durable", [True, False])
def test_every_change_survives_one_crash(change, durable):
    for leads in (1, 2):
        found = Model(change, leads, durable=durable).explore()
        assert found.broken == []
        assert found.ended > 0
        assert found.records > 0


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_only_changed_repartition_topics_make_a_chain(change):
    members = [
        Carrier(
            member_id=f"m{version}",
            process=f"p{version}",
            forms={part.form: (version,) for part in parts},
            writes={part.form: part.sinks for part in parts},
        )
        for version, parts in enumerate(CHANGES[change], 1)
    ]
    topics = Model(change, 1).topics
    joined = joined_families(members, topics)
    assert sorted(form for forms, _ in joined for form in forms) == sorted(topics)
    assert any(changed for _, changed in joined) == (change in CHAINED)


@pytest.mark.parametrize("change", sorted({**ONE_TOPIC, **TWO_TOPICS}))
def test_records_reach_their_stores_in_groups_of_each_size(change):
    """A record of each source partition passes all partitions of the topics on its way."""
    for members in sample((2, 4), every=2, reason="groups of 4: half a minute"):
        found = Model(change, 1, members=members).explore()
        assert found.broken == []
        assert found.ended > 0


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_without_crashes_partitions_wait_only_where_one_version_alone_reads_a_source(change):
    found = Model(change, 1, crashes=0).explore()
    assert found.broken == []
    assert (found.reported > 0) == (change in REPORTED)


@pytest.mark.parametrize("change", ["change", "merge", "removed", "both added", "moved"])
def test_a_change_survives_two_crashes(change):
    for leads in (1, 2):
        found = Model(change, leads, crashes=2).explore()
        assert found.broken == []
        assert found.states > 100


@pytest.mark.parametrize("change", ["change", "merge"])
def test_the_known_limit_is_met(change):
    assert Model(change, 1, crashes=2).explore().unconfirmed > 0


def test_two_crashes_without_state_directories_may_lose_the_memory():
    """Both processes that remembered restart without a memory: nothing is left to go by."""
    broken = Model("change", 1, crashes=2, durable=False).explore().broken
    assert broken[0].rule == "a partition returns to the old form"
