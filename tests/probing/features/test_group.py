from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.features import (
    LOOK_RULES,
    UNKNOWN_LEVELS,
    FinalizedLevels,
    LookNumbers,
    adopt_levels,
    decide_look,
    group_levels,
)


def at(epoch, level):
    return FinalizedLevels(levels={"a": level} if level else {}, epoch=epoch)


def look(polled, adopted):
    return decide_look(LookNumbers(polled=polled, adopted=adopted))


def test_the_leader_starts_a_rebalance_for_new_levels_and_for_nothing_else():
    assert look(at(2, 2), at(1, 1)).starts_rebalance
    assert look(at(3, 1), at(2, 2)).starts_rebalance, "an operator's step down is new"
    assert not look(at(2, 2), at(2, 2)).starts_rebalance
    assert not look(at(5, 2), at(2, 2)).starts_rebalance, "raised and lowered again meanwhile"
    assert not look(UNKNOWN_LEVELS, at(2, 2)).starts_rebalance


@pytest.mark.kip("584-11", "core")
def test_an_outdated_level_of_a_stale_broker_starts_no_rebalance():
    adopted = at(2, 1)
    decision = look(at(4, 1), adopted)
    assert (decision.starts_rebalance, decision.takes_epoch) == (False, True)
    adopted = adopt_levels(adopted, at(4, 1))
    assert look(at(3, 2), adopted).rule == "a stale broker"


@pytest.mark.kip("584-11", "core")
@given(st.integers(-1, 9), st.integers(0, 3), st.integers(0, 9), st.integers(0, 3))
def test_a_stale_broker_never_starts_a_rebalance(polled_epoch, polled, adopted_epoch, adopted):
    decision = look(at(polled_epoch, polled), at(adopted_epoch, adopted))
    if polled_epoch <= adopted_epoch:
        assert not decision.starts_rebalance


@pytest.mark.kip("584-11", "core")
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1),
)
def test_no_member_ever_goes_back_under_any_leader_and_any_brokers(epochs, polls):
    members = [at(epoch, epoch % 3) for epoch in epochs]
    for polled, leader in polls:
        answer = group_levels(at(polled, polled % 3), members)
        assert answer.epoch >= members[leader % len(members)].epoch
        after = [adopt_levels(adopted, answer) for adopted in members]
        pairs = zip(members, after, strict=True)
        assert all(now.epoch >= before.epoch for before, now in pairs)
        assert len({member.epoch for member in after}) == 1
        members = after


@pytest.mark.kip("584-11", "core")
def test_a_member_that_missed_rebalances_ignores_an_older_leaders_answer():
    assert adopt_levels(at(4, 2), at(3, 1)) == at(4, 2)
    assert adopt_levels(at(4, 2), at(5, 1)) == at(5, 1)


def test_every_row_decides_somewhere_and_has_a_reason():
    views = [UNKNOWN_LEVELS, at(1, 1), at(2, 2), at(2, 1), at(3, 1)]
    decided = [look(polled, adopted) for polled, adopted in product(views, views[1:])]
    assert {decision.rule for decision in decided} == {rule.name for rule in LOOK_RULES}
    assert any(
        decision.why.startswith("the broker is at epoch 1, the group at 2") for decision in decided
    )
