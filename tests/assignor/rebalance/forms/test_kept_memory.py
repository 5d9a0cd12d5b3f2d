"""What a member takes over from a level source, and what its leader believes of it."""

import pytest

from assignor.rebalance.forms.own import OwnTopology
from assignor.topology import content_fingerprint
from assignor.topology.changes import carried_topologies
from probing.topologies import HIGHEST_EPOCH, MOST_AHEAD, MOST_ENTRIES, Reached
from tests.assignor.rebalance.forms.mixed_group import MixedGroup, counting

OLD, NEW = counting(), counting(2, stores=("counts", "more"))
TOP = 2**31 - 1


def forms_of(*topologies):
    parts = carried_topologies(topologies, "app").subtopologies
    return [content_fingerprint(part) for part in parts]


def own(*topologies, reached=None):
    return OwnTopology(carried_topologies(topologies, "app"), reached)


def junk(number, epoch):
    return {n.to_bytes(8, "big"): Reached(epoch, TOP) for n in range(number)}


@pytest.mark.parametrize("number", [MOST_ENTRIES, 10_000])
@pytest.mark.parametrize("epoch", [9, MOST_AHEAD - 1, HIGHEST_EPOCH - 1])
def test_a_member_adopts_what_it_carries_or_remembers_and_no_junk(number, epoch):
    [old] = forms_of(OLD)
    member = own(OLD, reached={b"removed!": Reached(0, 2)})
    kept = {old: Reached(1, 2), b"removed!": Reached(1, 1)}
    member.adopt({**junk(number, epoch), **kept})
    assert member.reached == kept
    assert bool(member.why_ignored(junk(number, epoch))) == (epoch == HIGHEST_EPOCH - 1)


@pytest.mark.parametrize("epoch", [MOST_AHEAD + 4, 2**31 - 2, HIGHEST_EPOCH - 1, 2**63 - 1])
def test_an_epoch_far_ahead_of_what_the_member_remembers_is_refused(epoch):
    [old] = forms_of(OLD)
    member = own(OLD, reached={old: Reached(3, 2)})
    hostile = {old: Reached(epoch, TOP)}
    assert not member.is_news(hostile, member.carried.subtopologies)
    member.adopt(hostile)
    assert (member.reached, member.kept) == ({old: Reached(3, 2)}, {})
    why = member.why_ignored(hostile)
    assert why.startswith("1 reached versions of the topology beside the levels are ignored")
    assert "above 3, the highest one" in why
    member.adopt({old: Reached(3 + MOST_AHEAD, 1)})
    assert member.reached == {old: Reached(3 + MOST_AHEAD, 1)}


def test_what_an_answer_names_comes_before_what_is_only_remembered():
    [old] = forms_of(OLD)
    member = own(OLD, reached=junk(MOST_ENTRIES, 9))
    member.learn({old: Reached(0, 1), b"carried!": Reached(0, 1)})
    assert {old, b"carried!"} <= member.reached.keys()
    assert len(member.reached) == MOST_ENTRIES


@pytest.mark.parametrize("epoch", [9, HIGHEST_EPOCH - 1])
def test_a_leader_uses_what_is_kept_of_forms_that_live_members_carry_and_answers_no_junk(epoch):
    other = counting(1, sources=("other",))
    [lines] = forms_of(OLD)
    [form] = forms_of(other)
    group = MixedGroup()
    group.start("m0", other)
    group.start("m1", OLD)
    group.start("m2", OLD)
    leader = group.members["m0"].topology
    leader.adopt({**junk(10_000, epoch), lines: Reached(1, 2)})
    assert leader.reached == {}
    group.known["m0"] = leader.known
    group.settle("m0")
    # Version 2 was reached, and no member carries it.
    assert group.forms("lines") == [None] * 4
    for name in group.members:
        assert group.members[name].topology.reached == {lines: Reached(1, 2)}
    assert form not in leader.reached
