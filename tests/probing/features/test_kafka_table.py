from dataclasses import replace

import pytest

from probing.features import (
    KAFKA_FEATURES,
    METADATA_VERSION,
    Change,
    ControllerView,
    FeatureUpdate,
    FinalizedLevels,
    LevelRecord,
    NodeSupport,
    Role,
    UpdateError,
    UpdateKind,
    UpdateModel,
    UpdateRequest,
    decide_update,
    default_levels,
    find_kafka_release,
)

UP, SAFE, UNSAFE = UpdateKind.UPGRADE, UpdateKind.SAFE_DOWNGRADE, UpdateKind.UNSAFE_DOWNGRADE


def ask(view, update):
    name, level, kind = update
    row = FeatureUpdate(feature=name, level=level, kind=kind)
    return decide_update(view, UpdateRequest(updates=(row,)))


def rules(outcome):
    return [row.rule for row in outcome.results]


def kafka_view(series, level_now, *, quorum=(0,), **fields):
    ranges = find_kafka_release(series).ranges
    nodes = [NodeSupport(node_id=n, role=Role.CONTROLLER, ranges=ranges) for n in quorum]
    nodes.append(NodeSupport(node_id=9, role=Role.BROKER, ranges=ranges))
    return ControllerView(
        table=KAFKA_FEATURES,
        finalized=FinalizedLevels(levels={METADATA_VERSION: level_now}),
        nodes=tuple(nodes),
        quorum=quorum,
        model=UpdateModel.KAFKA,
        **fields,
    )


KAFKA_CASES = [
    ("3.9", 21, (METADATA_VERSION, 20, SAFE), "applied"),
    ("3.9", 20, (METADATA_VERSION, 21, UP), "applied"),
    ("3.9", 21, (METADATA_VERSION, 16, SAFE), "lossy downgrade"),
    ("3.9", 21, (METADATA_VERSION, 16, UNSAFE), "unsafe downgrade not done"),
    ("3.9", 21, (METADATA_VERSION, 22, UP), "a node cannot"),
    ("3.9", 21, (METADATA_VERSION, 20, UP), "lowered by an upgrade"),
    ("3.9", 20, (METADATA_VERSION, 21, SAFE), "raised by a downgrade"),
    ("3.9", 21, (METADATA_VERSION, 0, UNSAFE), "a node cannot"),
    ("3.9", 21, (METADATA_VERSION, 3, UNSAFE), "too low to be logged"),
    ("3.9", 21, ("kraft.version", 1, UP), "applied"),
    ("3.9", 21, ("group.version", 1, UP), "a node cannot"),
    ("3.9", 21, (METADATA_VERSION, -1, UNSAFE), "negative level"),
    ("4.0", 22, ("eligible.leader.replicas.version", 1, UP), "requires another feature"),
    ("4.3", 30, (METADATA_VERSION, 29, SAFE), "lossy downgrade"),
    ("4.2", 29, (METADATA_VERSION, 25, SAFE), "applied"),
    ("4.2", 29, ("nonsense", 0, SAFE), "no such level"),
    ("4.2", 29, ("nonsense", 1, UP), "a node cannot"),
]


@pytest.mark.parametrize(("series", "now", "update", "rule"), KAFKA_CASES)
def test_kafkas_own_rules_have_one_error_for_all(series, now, update, rule):
    outcome = ask(kafka_view(series, now), update)
    assert rules(outcome) == [rule]
    assert outcome.error in {UpdateError.NONE, UpdateError.INVALID_UPDATE_VERSION}
    assert outcome.ok == (rule == "applied")


@pytest.mark.parametrize("kind", [UP, SAFE, UNSAFE])
@pytest.mark.parametrize(("name", "level"), [(METADATA_VERSION, 29), ("transaction.version", 0)])
def test_kafka_writes_a_record_of_a_level_that_is_in_force(name, level, kind):
    """Its FeatureControlManager compares the levels for the kind of update only."""
    view = kafka_view("4.2", 29)
    outcome = ask(view, (name, level, kind))
    assert [row.change for row in outcome.results] == [Change.NOTHING]
    assert outcome.records == (LevelRecord(feature=name, level=level),)
    assert outcome.finalized == replace(view.finalized, epoch=view.finalized.epoch + 1)


@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_kafka_never_lowers_how_its_quorum_is_described(kind):
    view = kafka_view("4.2", 29)
    levels = {**view.finalized.levels, "kraft.version": 1}
    view = replace(view, finalized=FinalizedLevels(levels=levels, epoch=3))
    assert rules(ask(view, ("kraft.version", 0, kind))) == ["never lowered"]


def test_kafka_misses_a_silent_controller_where_kip_778_counts_a_majority():
    heard = kafka_view("3.9", 20, quorum=(0, 1, 2))
    nodes = tuple(node for node in heard.nodes if node.node_id != 2)
    silent = replace(heard, nodes=nodes)
    update = (METADATA_VERSION, 21, UP)
    assert ask(heard, update).ok
    refused = ask(silent, update)
    assert rules(refused) == ["a controller cannot"]
    assert "controller 2 (not registered)" in refused.results[0].why


@pytest.mark.parametrize(("level", "is_refused"), [(14, False), (15, True)])
def test_a_silent_controller_counts_from_3_7_iv0_on(level, is_refused):
    """`MetadataVersion.isControllerRegistrationSupported`: at least `IBP_3_7_IV0` (KIP-919)."""
    view = kafka_view("3.9", level, quorum=(0, 1, 2))
    silent = replace(view, nodes=tuple(node for node in view.nodes if node.node_id != 2))
    assert ask(silent, (METADATA_VERSION, level + 1, UP)).ok is not is_refused
    assert ask(view, (METADATA_VERSION, level + 1, UP)).ok


def test_defaults_and_what_levels_need_are_those_of_the_classes_of_4_4_0():
    """`MetadataVersion` and `Feature` of kafka-server-common 4.4.0."""
    needs = {
        feature.name: {level.requires for level in feature.levels}
        for feature in KAFKA_FEATURES.features
    }
    assert needs.pop(METADATA_VERSION) == {()}
    assert needs.pop("eligible.leader.replicas.version") == {((METADATA_VERSION, 23),)}
    assert set().union(*needs.values()) == {((METADATA_VERSION, 4),)}
    appear = {}
    for level in range(21, 34):
        for name, number in default_levels(level).items():
            if name != METADATA_VERSION:
                appear.setdefault((name, number), level)
    assert appear == {
        ("kraft.version", 1): 21,
        ("group.version", 1): 22,
        ("transaction.version", 2): 24,
        ("eligible.leader.replicas.version", 1): 26,
        ("share.version", 1): 28,
        ("streams.version", 1): 29,
        ("share.version", 2): 31,
    }
