"""Which member asks for a rebalance because of levels that it found."""

from dataclasses import replace

import pytest

from probing import RejoinNow, find_release, rejoin_for_levels, start_member
from probing.features import ASSIGNMENT_PROTOCOL, UNKNOWN_LEVELS, FinalizedLevels


def at(level, epoch):
    return FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level}, epoch=epoch)


STATE = start_member(find_release("native"))  # writes version 11


def test_a_leader_rejoins_for_new_levels_with_the_version_that_it_writes():
    assert rejoin_for_levels(STATE, at(101, 3), leads=True, is_led_by_jvm=False) == RejoinNow(
        used_version=11,
        rule="new levels",
        why=f"levels changed at epoch 3, the group is at {STATE.levels.epoch}; one rebalance tells"
        " all members",
    )


@pytest.mark.parametrize("field", ["levels", "polled"])
@pytest.mark.parametrize("is_led_by_jvm", [False, True])
def test_no_member_rejoins_for_levels_that_it_knows_or_for_older_ones(field, is_led_by_jvm):
    state = replace(STATE, **{field: at(9, 3)})
    for found in (UNKNOWN_LEVELS, at(8, 2), at(9, 3), at(9, 4)):
        assert not rejoin_for_levels(state, found, leads=True, is_led_by_jvm=is_led_by_jvm), found
    assert rejoin_for_levels(state, at(8, 4), leads=True, is_led_by_jvm=is_led_by_jvm)


def test_a_follower_rejoins_only_under_a_jvm_leader_and_only_to_write_a_lower_version():
    def rejoins(found, *, is_led_by_jvm):
        return rejoin_for_levels(STATE, found, leads=False, is_led_by_jvm=is_led_by_jvm)

    assert rejoins(at(9, 1), is_led_by_jvm=True)
    assert not rejoins(at(9, 1), is_led_by_jvm=False)
    assert not rejoins(at(11, 1), is_led_by_jvm=True)
    assert not rejoins(at(101, 1), is_led_by_jvm=True)
    assert not rejoins(FinalizedLevels(levels={"a": 2}, epoch=3), is_led_by_jvm=True)
