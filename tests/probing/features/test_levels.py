import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.features import (
    FIRST_EPOCH,
    MAX_LEVEL,
    UNKNOWN_LEVELS,
    FeatureError,
    FinalizedLevels,
    LevelRange,
    LevelRecord,
    advertised_range,
    newest_levels,
)

LEVELS = st.integers(min_value=1, max_value=MAX_LEVEL)


@pytest.mark.kip("584-1", "core")
@given(first=LEVELS, second=LEVELS)
def test_a_supported_range_goes_from_its_minimum_to_its_maximum(first, second):
    low, high = sorted((first, second))
    levels = LevelRange(min=low, max=high)
    assert low in levels
    assert high in levels
    assert low - 1 not in levels
    assert high + 1 not in levels
    assert levels.advertised == (low, high)


@pytest.mark.kip("584-1", "core")
@given(low=st.integers(-(2**15), MAX_LEVEL + 5), high=st.integers(-(2**15), MAX_LEVEL + 5))
def test_anything_else_is_refused_with_its_two_numbers(low, high):
    if 1 <= low <= high <= MAX_LEVEL:
        assert str(LevelRange(min=low, max=high)) == f"{low}..{high}"
        return
    with pytest.raises(FeatureError, match=rf"{low}\.\.{high}"):
        LevelRange(min=low, max=high)


def test_kafkas_minimum_of_zero_means_that_a_feature_can_be_off():
    levels = advertised_range(0, 2)
    assert [level in levels for level in (0, 1, 2, 3)] == [True, True, True, False]
    assert levels.advertised == (0, 2)
    assert str(levels) == "0..2"
    assert 0 not in LevelRange(min=1, max=2)


def test_zero_to_zero_is_advertised_by_a_node_without_the_feature():
    assert advertised_range(0, 0) is None
    assert advertised_range(3, 7) == LevelRange(min=3, max=7)
    with pytest.raises(FeatureError, match=r"-1\.\.4"):
        advertised_range(-1, 4)


@pytest.mark.kip("584-2", "core")
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1)))
def test_each_update_of_the_levels_is_one_step_of_the_epoch(updates):
    finalized, wanted = FinalizedLevels(), {}
    for count, changes in enumerate(updates, start=1):
        finalized = finalized.changed(changes)
        wanted |= changes
        assert finalized.epoch == FIRST_EPOCH + count
        assert finalized.levels == {name: level for name, level in wanted.items() if level}
        assert [finalized.level_of(name) for name in "abc"] == [wanted.get(n, 0) for n in "abc"]


@pytest.mark.parametrize("level", [0, -1, MAX_LEVEL + 1])
def test_a_level_that_cannot_be_finalized_is_named(level):
    with pytest.raises(FeatureError, match=f"transactions cannot be finalized at level {level}:"):
        FinalizedLevels(levels={"transactions": level})


def test_an_epoch_starts_where_nothing_is_known():
    assert UNKNOWN_LEVELS.epoch == -1
    assert UNKNOWN_LEVELS.changed({"a": 1}).epoch == 1
    with pytest.raises(FeatureError, match="invalid epoch -2"):
        FinalizedLevels(epoch=-2)


@pytest.mark.kip("778-6", "core")
def test_a_record_and_what_is_finalized_have_one_level_and_no_minimum():
    assert set(LevelRecord.__slots__) == {"feature", "level"}
    assert all(isinstance(level, int) for level in FinalizedLevels(levels={"a": 3}).levels.values())


@pytest.mark.kip("584-11", "core")
@given(st.permutations([(0, 1), (4, 2), (5, 1), (5, 1), (-1, 0)]))
def test_the_highest_epoch_wins_however_late_a_stale_view_comes(views):
    stale_and_new = [
        FinalizedLevels(levels={"a": level} if level else {}, epoch=epoch) for epoch, level in views
    ]
    assert newest_levels(stale_and_new) == FinalizedLevels(levels={"a": 1}, epoch=5)


def test_without_views_no_levels_are_known():
    assert newest_levels([]) == UNKNOWN_LEVELS
    one_epoch = [FinalizedLevels(levels={"a": level}, epoch=3) for level in (2, 7, 1)]
    assert newest_levels(one_epoch).level_of("a") == 7


@pytest.mark.kip("778-15", "core")
@given(st.permutations([(-1, 7), (0, 2), (-1, 9)]))
def test_levels_without_an_epoch_do_not_count(views):
    reported = [FinalizedLevels(levels={"a": level}, epoch=epoch) for epoch, level in views]
    assert newest_levels(reported) == FinalizedLevels(levels={"a": 2}, epoch=0)
    assert newest_levels([levels for levels in reported if levels.epoch < 0]) == UNKNOWN_LEVELS
    assert newest_levels([UNKNOWN_LEVELS]) == UNKNOWN_LEVELS
