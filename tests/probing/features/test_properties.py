"""Any request to any controller gets an outcome, and applied updates are valid."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.features import (
    REQUEST_RULES,
    UPDATE_RULES,
    ControllerView,
    Feature,
    FeatureTable,
    FeatureUpdate,
    FinalizedLevels,
    Level,
    LevelRange,
    NodeSupport,
    Role,
    UpdateKind,
    UpdateModel,
    UpdateRequest,
    decide_update,
)

NAMES = ("a", "b", "metadata.version")
QUORUM = ("c0", "c1", "c2")


@st.composite
def tables(draw):
    features = []
    for name in NAMES:
        numbers = sorted(draw(st.sets(st.integers(1, 6), min_size=1)))
        levels = []
        for number in numbers:
            others = st.tuples(st.sampled_from(NAMES), st.integers(1, 6))
            required = [
                requirement
                for requirement in draw(st.lists(others, max_size=1))
                if requirement[0] != name
            ]
            levels.append(
                Level(
                    number=number,
                    name=f"L{number}",
                    release="1.0",
                    changed="something",
                    compatible_back=draw(st.booleans()),
                    requires=tuple(required),
                )
            )
        features.append(
            Feature(
                name=name,
                levels=tuple(levels),
                governs="something",
                is_always_on=draw(st.booleans()),
                can_be_lowered=draw(st.integers(0, 4)) > 0,
            )
        )
    return FeatureTable(features=tuple(features))


@st.composite
def ranges(draw):
    found = {}
    for name in NAMES:
        low, high = sorted((draw(st.integers(1, 6)), draw(st.integers(1, 6))))
        if draw(st.integers(0, 4)):
            found[name] = LevelRange(min=low, max=high, can_be_off=draw(st.booleans()))
    return found


@st.composite
def views(draw):
    brokers = [
        NodeSupport(node_id=f"b{n}", role=Role.BROKER, ranges=draw(ranges()))
        for n in range(draw(st.integers(0, 2)))
    ]
    voters = [
        NodeSupport(node_id=name, role=Role.CONTROLLER, ranges=draw(ranges()))
        for name in QUORUM
        if name == "c0" or draw(st.booleans())
    ]
    levels = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 6)))
    return ControllerView(
        table=draw(tables()),
        finalized=FinalizedLevels(levels=levels, epoch=draw(st.integers(0, 9))),
        nodes=(*brokers, *voters),
        node_id="c0",
        quorum=draw(st.sampled_from([(), QUORUM])),
        is_active=draw(st.integers(0, 9)) > 0,
        is_enabled=draw(st.integers(0, 9)) > 0,
        minimums=draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 6), max_size=1)),
        model=draw(st.sampled_from(UpdateModel)),
    )


updates = st.builds(
    FeatureUpdate,
    feature=st.sampled_from((*NAMES, "unknown")),
    level=st.integers(-1, 7),
    kind=st.sampled_from(UpdateKind),
)
requests = st.builds(
    UpdateRequest,
    updates=st.lists(updates, max_size=3).map(tuple),
    validate_only=st.booleans(),
    together=st.booleans(),
    is_authorized=st.integers(0, 9).map(bool),
)


@pytest.mark.kip("584-5", "core")
@given(views(), requests)
def test_every_request_gets_an_answer_for_each_line_with_its_rule_and_its_sentence(view, request):
    outcome = decide_update(view, request)
    assert [row.feature for row in outcome.results] == [row.feature for row in request.updates]
    known = {rule.name for rule in (*UPDATE_RULES[view.model], *REQUEST_RULES)} | {"all or none"}
    for row in outcome.results:
        assert row.rule in known
        assert row.why
        assert "{" not in row.why
    if request.validate_only or not request.updates:
        assert (outcome.finalized, outcome.records) == (view.finalized, ())
    if not outcome.ok and (request.together or view.model is UpdateModel.KAFKA):
        assert (outcome.finalized, outcome.records) == (view.finalized, ())


@pytest.mark.kip("584-4", "core")
@pytest.mark.kip("778-9", "core")
@given(views(), requests)
def test_what_is_applied_is_supported_required_and_allowed(view, request):
    outcome = decide_update(view, request)
    assert outcome.finalized.epoch == view.finalized.epoch + bool(outcome.records)
    kinds = {row.feature: row.kind for row in request.updates}
    for record in outcome.records:
        name, level, old = record.feature, record.level, view.finalized.level_of(record.feature)
        feature = view.table.find(name)
        assert outcome.finalized.level_of(name) == level
        assert feature is not None
        assert level == 0 or feature.find(level) is not None
        if level == old:  # Kafka writes it again
            assert view.model is UpdateModel.KAFKA
        else:
            assert (level > old) == (kinds[name] is UpdateKind.UPGRADE)
        lost = feature.lossy_between(low=level, high=old)
        assert not lost or kinds[name] is UpdateKind.UNSAFE_DOWNGRADE
        assert level >= old or feature.can_be_lowered
        if level:
            brokers = [node for node in view.nodes if node.role is Role.BROKER]
            assert all(node.supports(name, level) for node in brokers)
            assert view.table.unmet(name, level, outcome.finalized.levels) is None
        if level and view.quorum and view.model is UpdateModel.KIP:
            able = [node for node in view.nodes if str(node.node_id) in view.quorum]
            assert sum(node.supports(name, level) for node in able) > len(view.quorum) // 2
            assert level >= view.minimums.get(name, 0)


@given(views(), requests)
def test_a_dry_run_has_the_result_of_the_same_request(view, request):
    dry = decide_update(view, replace(request, validate_only=True))
    done = decide_update(view, replace(request, validate_only=False))
    assert dry.results == done.results
    assert dry.error is done.error


@given(views(), requests)
def test_what_was_applied_changes_no_level_again(view, request):
    outcome = decide_update(view, request)
    again = decide_update(replace(view, finalized=outcome.finalized), request)
    done = {record.feature for record in outcome.records}
    repeated = {record.feature for record in again.records} & done
    assert not repeated or view.model is UpdateModel.KAFKA
    for name in done:
        assert again.finalized.level_of(name) == outcome.finalized.level_of(name)
