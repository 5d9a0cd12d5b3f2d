import random

import pytest

from system_tests.live.order import (
    NAMED_ORDERS,
    OrderError,
    bounce_order,
    check_order,
    find_member,
    member_names,
)

MEMBERS = member_names(4)


def order(text, *, leader="b", seed=7):
    return bounce_order(text, MEMBERS, leader=leader, rng=random.Random(seed))  # noqa: S311 repeatable, not secret


@pytest.mark.parametrize("named", NAMED_ORDERS)
def test_every_named_order_takes_every_member_once(named):
    assert sorted(order(named)) == list(MEMBERS)


@pytest.mark.parametrize("seed", range(8))
def test_the_leader_has_its_place_in_the_order(seed):
    assert order("leader-last", seed=seed)[-1] == "b"
    assert order("leader-first", seed=seed)[0] == "b"


def test_one_seed_gives_one_order_and_seeds_differ():
    assert order("random", seed=7) == order("random", seed=7)
    assert len({order("random", seed=seed) for seed in range(20)}) > 1


@pytest.mark.parametrize("text", ["1,2,0,3", "b,c,a,d", "b, 2 ,a,d"])
def test_members_may_be_listed_by_number_or_name(text):
    assert order(text) == ("b", "c", "a", "d")


@pytest.mark.parametrize(
    "text", ["", "1,2", "1,1,2,3", "1,2,0,9", "leader", "a,b,c,d,a", "-1,0,1,2"]
)
def test_any_other_order_is_refused_with_what_is_accepted(text):
    with pytest.raises(OrderError, match="leader-last"):
        check_order(text, MEMBERS)


@pytest.mark.parametrize(("text", "member"), [("a", "a"), ("0", "a"), ("3", "d")])
def test_members_are_found_by_name_and_number(text, member):
    assert find_member(text, MEMBERS) == member


def test_a_member_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(OrderError, match="a, b, c, d"):
        find_member("e", MEMBERS)
