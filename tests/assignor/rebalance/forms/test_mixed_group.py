"""Leader and members through a rolling change of the topology, joined by bytes."""

import pytest

from assignor.topology import content_fingerprint
from probing import RejoinNow
from probing.features import FinalizedLevels
from probing.topologies import Reached, lowered
from tests.assignor.rebalance.forms.mixed_group import MixedGroup, counting

OLD, BOTH = ("counts",), ("counts", "totals")
NAMES = ("a", "b", "c")


def group_of(*topologies, **options):
    group = MixedGroup(**options)
    for name in NAMES:
        group.start(name, *topologies)
    group.settle("a")
    return group


def bounce(group, name, *topologies, leader):
    """Stop a member, rebalance, and start it with another program; returns rebalances per step."""
    kept = group.stop(name)
    others = [other for other in NAMES if other in group.members]
    leads = leader if leader in group.members else others[0]
    first = group.settle(leads) if others else 0
    group.start(name, *topologies, reached=kept)
    return first, group.settle(leader if leader in group.members else others[0])


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("leader", ["a", "c"])
def test_an_added_subtopology_runs_from_its_first_member_on(leader, cooperative):
    group = group_of(counting(), cooperative=cooperative)
    # The new source sorts first, so that every subtopology gets another number.
    new = counting(2, sources=("lines", "other"), names={"other": "a-first"})
    for name in NAMES:
        bounce(group, name, new, leader=leader)
        assert group.forms("lines") == [OLD] * 4
        assert group.forms("other") == [()] * 2
        assert group.failures == {}


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("leader", ["a", "c"])
def test_a_removed_subtopology_runs_until_its_last_member_has_gone(leader, cooperative):
    old = counting(sources=("lines", "other"), names={"other": "a-first"})
    group = group_of(old, cooperative=cooperative)
    for name in ("a", "b"):
        bounce(group, name, counting(2), leader=leader)
        assert group.forms("other") == [()] * 2
        assert group.forms("lines") == [OLD] * 4
    group.stop("c")
    group.settle("a")
    assert group.forms("other") == [None] * 2
    retired = [w for w in group.last.warnings if "retired" in w]
    group.rebalance("a")
    assert len(retired) <= 1
    assert not any("retired" in w for w in group.last.warnings)
    group.start("c", counting(2))
    group.settle("a")
    assert group.forms("lines") == [OLD] * 4


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("leader", ["a", "c"])
def test_a_changed_subtopology_never_returns(leader, cooperative):
    group = group_of(counting(), cooperative=cooperative)
    ran_new = set()
    for name in NAMES:
        _, rebalances = bounce(group, name, counting(2, stores=BOTH), leader=leader)
        assert rebalances <= 3
        forms = group.forms("lines")
        assert None not in forms
        assert all(forms[p] == BOTH for p in ran_new)
        ran_new |= {p for p, form in enumerate(forms) if form == BOTH}
        assert ran_new
    assert group.forms("lines") == [BOTH] * 4


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_new_leader_that_knows_no_other_topology_takes_no_more_than_its_share(cooperative):
    """A static leader that returns with the new program leads members that never described theirs.

    It asks for their topologies; until they answer, what they ran stays theirs.
    """
    group = group_of(counting(), cooperative=cooperative)
    kept = group.stop("a")
    group.start("a", counting(2, stores=BOTH), reached=kept)
    before = {p: name for name in "bc" for p in partitions_of(group, name)}
    group.rebalance("a")
    assert set(group.last.memory.topologies.asked) == {"b", "c"}
    assert group.settle("a") <= 3
    after = {p: name for p, (name, _) in group.owners("lines").items()}
    stayed = [p for p, name in before.items() if after[p] == name]
    assert len(stayed) >= len(before) - 1
    assert set(after.values()) == {"a", "b", "c"}
    assert all((form == BOTH) == (after[p] == "a") for p, form in enumerate(group.forms("lines")))
    for _ in range(3):
        group.settle("a")
        assert {p: name for p, (name, _) in group.owners("lines").items()} == after


def partitions_of(group, member):
    return [p for p, (name, _) in group.owners("lines").items() if name == member]


def test_members_that_carry_both_wait_for_one_that_is_asked_what_it_carries():
    both = (counting(), counting(2, stores=BOTH))
    group = MixedGroup()
    for name, carried in (("a", both), ("b", both), ("c", both[:1])):
        group.start(name, *carried)
    group.rebalance("a")
    assert set(group.last.memory.topologies.asked) == {"c"}
    group.settle("a")
    assert group.forms("lines") == [OLD] * 4


def test_orphans_wait_if_only_the_old_form_is_left_and_the_reports_say_for_whom():
    group = group_of(counting())
    bounce(group, "a", counting(2, stores=BOTH), leader="b")
    moved = [p for p, form in enumerate(group.forms("lines")) if form == BOTH]
    group.stop("a")
    group.settle("b")
    forms = group.forms("lines")
    assert [p for p, form in enumerate(forms) if form is None] == moved
    assert group.last.waiting_tasks == len(moved)
    [waiting] = group.last.waiting
    assert "reads lines wait: version 2 was reached in epoch 0" in waiting
    assert "assignor features downgrade-topology" in waiting
    group.start("a", counting(2, stores=BOTH))
    group.settle("b")
    assert None not in group.forms("lines")
    assert group.last.waiting == ()


def test_a_lowered_memory_in_a_state_directory_takes_the_group_back():
    group = group_of(counting())
    for name in NAMES:
        bounce(group, name, counting(2, stores=BOTH), leader="a")
    kept = group.stop("c")
    group.settle("a")
    group.start("c", counting(), reached=kept)
    group.settle("a")
    assert {name for name, _ in group.owners("lines").values()} == {"a", "b"}
    group.stop("c")
    group.settle("a")
    group.start("c", counting(), reached=lowered(kept, kept, 1))
    group.settle("a")
    assert "c" in {name for name, _ in group.owners("lines").values()}
    for name in ("a", "b"):
        bounce(group, name, counting(), leader="c")
    assert group.forms("lines") == [OLD] * 4


def test_after_a_way_back_a_finalized_level_makes_the_version_reached_again():
    """Else a member with the old program takes partitions back into the old form."""
    new = counting(2, stores=BOTH)
    group = group_of(counting())
    for name in NAMES:
        bounce(group, name, new, leader="a")
    for member in group.members.values():
        member.topology.reached = lowered(member.topology.reached, member.topology.reached, 1)
    for topology in (counting(), new):
        for name in NAMES:
            bounce(group, name, topology, leader="a")
    assert group.forms("lines") == [BOTH] * 4
    group.levels = FinalizedLevels(levels={"topology.version": 2}, epoch=3)
    group.settle("a")
    group.levels = FinalizedLevels(levels={}, epoch=4)
    group.start("d", counting())
    group.settle("a")
    assert group.forms("lines") == [BOTH] * 4
    assert "d" not in {name for name, _ in group.owners("lines").values()}


def test_programs_of_one_version_that_contradict_each_other_reach_nothing():
    group = group_of(counting())
    group.start("d", counting(stores=BOTH))
    group.settle("a")
    assert group.forms("lines") == [OLD] * 4
    group.stop("d")
    for name in NAMES:
        bounce(group, name, counting(2, stores=BOTH), leader="a")
    group.start("d", counting())
    group.settle("a")
    assert group.forms("lines") == [BOTH] * 4
    assert "d" not in {name for name, _ in group.owners("lines").values()}


def test_a_claim_of_one_process_that_cannot_run_it_makes_nothing_wait():
    group = group_of(counting())
    [part] = counting().subtopologies("app")
    form = content_fingerprint(part)
    group.members["b"].topology.reached = {form: Reached(5, 9)}
    group.settle("a")
    assert group.forms("lines") == [OLD] * 4
    assert group.last.waiting == ()


def test_programs_with_both_versions_switch_together_and_go_back():
    both = (counting(), counting(2, stores=BOTH))
    group = group_of(counting())
    for name in ("a", "b"):
        bounce(group, name, *both, leader="c")
        assert group.forms("lines") == [OLD] * 4
    bounce(group, "c", *both, leader="a")
    assert group.forms("lines") == [BOTH] * 4
    group.levels = FinalizedLevels(levels={"topology.version": 1}, epoch=3)
    group.settle("a")
    assert group.forms("lines") == [OLD] * 4
    group.levels = FinalizedLevels(levels={"topology.version": 2}, epoch=4)
    group.settle("a")
    assert group.forms("lines") == [BOTH] * 4


def test_a_static_member_that_returns_with_both_versions_asks_for_a_new_answer_once():
    """Its coordinator gives it what its former self got: no leader knows that it carries both."""
    both = (counting(), counting(2, stores=BOTH))
    group = MixedGroup()
    for name in NAMES:
        group.start(name, *both[: 1 + (name != "c")], instance_id=f"{name}-instance")
    group.settle("a")
    answer = group.last.answers["c"]
    group.start("c", *both, instance_id="c-instance")
    received = group.members["c"].receive(answer.partitions, answer.user_data, now_ms=1)
    assert received.failure == ""
    [rejoin] = [command for command in received.commands if isinstance(command, RejoinNow)]
    assert "has not reached topology version 2" in rejoin.why
    group.settle("a")
    assert group.forms("lines") == [BOTH] * 4
    answer = group.last.answers["c"]
    group.start("c", *both, instance_id="c-instance")
    received = group.members["c"].receive(answer.partitions, answer.user_data, now_ms=1)
    assert not any(isinstance(command, RejoinNow) for command in received.commands)


def test_two_topologies_of_one_version_are_named():
    group = group_of(counting())
    bounce(group, "c", counting(stores=BOTH), leader="a")
    [sentence] = group.last.waiting
    assert "two topologies have version 1" in sentence
    assert "c get none" in sentence
    assert group.forms("lines") == [OLD] * 4


def test_equal_programs_write_nothing_new():
    group = group_of(counting())
    native = group.last.answers["b"].assignment.native
    assert (native.numbered_by, native.reached_versions, native.describe_topology) == (
        (),
        (),
        False,
    )
    value = group.members["b"].subscription()[0].native
    assert (value.carried, value.reached_versions, value.topology_version) == ((), (), 1)
