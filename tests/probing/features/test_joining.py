import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.features import (
    KAFKA_FEATURES,
    METADATA_VERSION,
    FinalizedLevels,
    JoinNumbers,
    LevelRange,
    NodeSupport,
    Role,
    decide_join,
    find_kafka_release,
)


def decide(ranges, levels, **fields):
    node = NodeSupport(node_id=3, role=Role.BROKER, ranges=ranges)
    finalized = FinalizedLevels(levels=levels)
    return decide_join(JoinNumbers(node=node, finalized=finalized, table=KAFKA_FEATURES, **fields))


@pytest.mark.kip("584-6", "core")
@given(low=st.integers(1, 9), span=st.integers(0, 9), level=st.integers(1, 20))
def test_a_node_joins_exactly_when_its_range_holds_the_finalized_level(low, span, level):
    decision = decide({"a": LevelRange(min=low, max=low + span)}, {"a": level})
    assert decision.is_accepted == (low <= level <= low + span)
    assert decision.lacking == (() if decision.is_accepted else ("a",))


@pytest.mark.kip("584-6", "core")
def test_the_rejection_names_the_level_the_supported_range_and_what_to_do():
    decision = decide(find_kafka_release("3.8").ranges, {METADATA_VERSION: 21, "group.version": 1})
    assert not decision.is_accepted
    assert decision.error_code == 35
    assert decision.why == (
        "broker 3 cannot join, because it does not support group.version=1 (it supports none),"
        " metadata.version=21 (3.9-IV0) (it supports 1..20); start it with a release that does,"
        " or lower the level first"
    )


def test_a_feature_that_is_off_keeps_nobody_out():
    assert decide({}, {}).is_accepted
    assert decide({"a": LevelRange(min=4, max=5)}, {}).error_code == 0


@pytest.mark.kip("584-12", "core")
def test_nobody_is_checked_before_levels_count():
    decision = decide({}, {"a": 1}, is_enabled=False)
    assert (decision.is_accepted, decision.rule) == (True, "levels do not count yet")
    node = NodeSupport(node_id=1, is_migrated=False)
    finalized = FinalizedLevels(levels={"a": 1})
    decision = decide_join(JoinNumbers(node=node, finalized=finalized, table=KAFKA_FEATURES))
    assert (decision.is_accepted, decision.rule) == (True, "levels do not count yet")
