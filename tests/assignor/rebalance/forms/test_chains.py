"""Real leaders and members through changes of repartition topics: every record reaches its stores.

The changes and the oracle are those of the exploration (`tests/probing/topologies`).
"""

from itertools import permutations
from unittest import mock

import pytest

from probing.topologies import families, forms, lowered, units
from tests.assignor.rebalance.forms.watched_group import Watched, bounced, topology
from tests.nightly import sample
from tests.probing.topologies.changes import CHANGES, ONE_TOPIC, TWO_TOPICS
from tests.probing.topologies.model import PARTITIONS

REPEATED = {**ONE_TOPIC, **TWO_TOPICS}


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_records_reach_their_stores_in_every_mix_of_old_and_new_members(change, cooperative):
    for members in (2, 3, 4):
        orders = list(permutations(range(members)))
        for order in sample(orders, every=12, reason="every order of bounces: 10 minutes"):
            group = bounced(change, members, order, order[-1], cooperative=cooperative)
            assert group.found.broken == []
            assert group.found.records > 0


@pytest.mark.parametrize("change", sorted(REPEATED))
def test_a_crash_and_a_lost_canary_stop_nothing_in_silence(change):
    for members in (2, 3, 4):
        group = Watched(change, members)
        group.bounce("m0", "m1")
        kept = group.stop("m0")
        group.settle("m1")
        group.look()
        assert group.found.broken == []
        group.start("m0", topology(change, 2), reached=kept)
        group.settle("m1")
        group.stop("m1")
        group.settle("m0")
        group.look()
        assert group.found.broken == []


@pytest.mark.parametrize("change", sorted(REPEATED))
def test_the_way_back_after_an_operator_lowered_the_version_loses_no_record(change):
    for members in (2, 3, 4):
        group = bounced(change, members, range(members), members - 1)
        for member in group.members.values():
            member.topology.reached = lowered(member.topology.reached, member.topology.reached, 1)
        for number in range(members):
            group.bounce(f"m{number}", "m0" if number else "m1", version=1)
        assert group.found.broken == []
        assert {group.program(name) for name in group.members} == {1}
        assert group.last.waiting == ()


def one_by_one(members, topics):
    live = {form: topics[form] for member in members for form in member.forms}
    return [(family, frozenset()) for family in families(live)]


def first_owner(family, running, members, topics):
    del family, members, topics
    name = next(iter(running))
    return dict.fromkeys(running[name], name)


def test_partitions_that_change_one_by_one_lose_records_of_repartition_topics():
    """The fault that was there: a partition has one form, and each partition changes alone."""
    with (
        mock.patch.object(forms, "joined_families", one_by_one),
        mock.patch.object(units, "_kept_forms", first_owner),
    ):
        broken = bounced("removed", 4, (3, 2, 1, 0), 0).found.broken
    words = [b.sentence for b in broken if b.rule == "records do not reach their store"]
    assert any(w.startswith("lines-0 stay in lines-0, which no member reads") for w in words)


@pytest.mark.parametrize("change", ["removed", "moved", "swapped", "both added"])
def test_a_chain_that_changes_one_partition_at_a_time_is_found(change):
    with mock.patch.object(forms, "joined_families", one_by_one):
        assert any(
            bounced(change, members, range(members), members - 1).found.broken
            for members in (2, 3, 4)
        )


def test_the_first_new_members_leave_a_chain_to_the_old_ones():
    group = Watched("removed", 4)
    versions = []
    for name in ("m3", "m2", "m1"):
        group.bounce(name, "m0")
        versions.append({group.program(m) for m in group.members if group.members[m].held.active})
    assert versions == [{1}, {1}, {2}]
    assert group.last.waiting == ()


def test_a_source_that_only_the_new_version_reads_is_reported_while_it_waits():
    group = Watched("moved to a new source", 3)
    group.bounce("m2", "m0")
    [sentence] = group.last.waiting
    assert sentence.startswith("2 partitions of x wait: one version of the topology reads them")
    assert "once more members can run version 2 (1 now) than cannot (2 now)" in sentence
    assert group.last.waiting_tasks == len(PARTITIONS)
    group.bounce("m1", "m0")
    assert group.last.waiting == ()
