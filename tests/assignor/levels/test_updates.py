"""Updates from an operator's options."""

from dataclasses import replace

import pytest

from assignor.errors import ConfigError
from assignor.levels.updates import (
    Described,
    LevelResult,
    disabling,
    level_text,
    lossy_text,
    lower_all,
    named_updates,
    raise_all,
)
from probing.features import (
    KAFKA_FEATURES,
    METADATA_VERSION,
    NATIVE_FEATURES,
    PERSISTENT_METADATA,
    TASK_PLACEMENT,
    TOPOLOGY_VERSION,
    FinalizedLevels,
    LevelRange,
    NodeSupport,
    UpdateKind,
    find_kafka_release,
    raised_minimums,
)

UP, SAFE = UpdateKind.UPGRADE, UpdateKind.SAFE_DOWNGRADE


def cluster(release="4.3", **levels):
    finalized = {METADATA_VERSION: 22} | {
        f"{name.replace('_', '.')}.version": level for name, level in levels.items()
    }
    return Described(
        source="broker 1",
        table=KAFKA_FEATURES,
        supported=find_kafka_release(release).ranges,
        finalized=FinalizedLevels(levels=finalized, epoch=3),
    )


def group():
    return Described(
        source="group g",
        table=NATIVE_FEATURES,
        supported={},
        finalized=FinalizedLevels(levels={PERSISTENT_METADATA: 1}),
    )


def plain(updates):
    return {update.feature: update.level for update in updates}


def named(described=None, *, metadata=None, features=(), kind=UP):
    described = described or cluster()
    return plain(named_updates(described, metadata=metadata, features=features, kind=kind))


@pytest.mark.parametrize(
    ("text", "level"), [("21", 21), ("3.9-IV0", 21), ("3.9", 21), ("4.0", 25), ("77", 77)]
)
def test_a_level_is_a_number_a_name_or_a_release(text, level):
    assert named(metadata=text) == {METADATA_VERSION: level}


def test_metadata_stands_for_the_main_feature_of_the_place():
    assert named(group(), metadata="2") == {PERSISTENT_METADATA: 2}
    assert named(group(), features=("assignment.protocol=v101",)) == {"assignment.protocol": 101}


def test_a_feature_that_is_unknown_here_is_named_by_numbers():
    assert named(features=("new.version=4",)) == {"new.version": 4}
    with pytest.raises(ConfigError, match="give its level as a number"):
        named(features=("new.version=next",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no level is given"),
        ({"features": ("a",)}, "not of the form NAME=LEVEL"),
        ({"features": ("=1",)}, "not of the form NAME=LEVEL"),
        ({"features": ("a=1", "a=2")}, "a has more than one level"),
        ({"metadata": "2.8"}, "has no level '2.8'"),
        ({"metadata": "-1"}, "has no level '-1'"),
    ],
)
def test_invalid_words_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        named(**options)


def test_all_are_raised_as_far_as_known_here_and_supported_there():
    assert plain(raise_all(cluster(), None)) == {
        METADATA_VERSION: 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert plain(raise_all(cluster("4.0"), None))[METADATA_VERSION] == 25


def test_all_are_raised_to_a_release_and_what_is_there_already_is_left():
    found = plain(raise_all(cluster(group=1), "4.1"))
    assert found == {
        METADATA_VERSION: 27,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
    }
    assert raise_all(cluster(group=1), "3.9") == ()


def test_a_feature_that_cannot_be_lowered_is_not_raised_with_the_others():
    assert "kraft.version" not in plain(raise_all(cluster(), None))
    assert named(features=("kraft.version=1",)) == {"kraft.version": 1}


def test_all_are_lowered_to_a_release_and_what_it_does_not_know_is_taken_out():
    described = cluster(transaction=2, group=1)
    updates = lower_all(described, "3.9", SAFE)
    assert plain(updates) == {METADATA_VERSION: 21, "transaction.version": 0, "group.version": 0}
    assert {update.kind for update in updates} == {SAFE}
    assert lower_all(described, None, SAFE) == ()
    later = cluster(future=3)
    assert plain(lower_all(later, None, SAFE)) == {"future.version": 0}


def test_a_release_of_kafka_has_no_levels_of_a_group():
    with pytest.raises(ConfigError, match="does not define levels of a group"):
        raise_all(group(), "3.9")
    with pytest.raises(ConfigError, match=r"'2\.8' has no finalized levels"):
        lower_all(cluster(), "2.8", SAFE)


def test_features_are_disabled_one_by_one():
    assert plain(disabling(["a", "b"], SAFE)) == {"a": 0, "b": 0}
    for names in ([], ["a", "a"]):
        with pytest.raises(ConfigError, match="give each feature"):
            disabling(names, SAFE)


def test_level_texts_have_number_and_name():
    assert level_text(KAFKA_FEATURES, METADATA_VERSION, 21) == "21 (3.9-IV0)"
    assert level_text(KAFKA_FEATURES, "group.version", 1) == "1"
    assert level_text(KAFKA_FEATURES, "group.version", 0) == "off"
    assert level_text(KAFKA_FEATURES, "new.version", 4) == "4"


def test_the_levels_that_forbid_a_downgrade_are_named_unless_the_answer_does():
    down = LevelResult(feature=METADATA_VERSION, old=24, new=16, error="X", why="refused")
    assert lossy_text(KAFKA_FEATURES, down) == (
        "a downgrade below 17 (3.7-IV2), 23 (4.0-IV1) loses the metadata of that level"
    )
    named_already = LevelResult(
        feature=METADATA_VERSION, old=24, new=22, error="X", why="see 4.0-IV1"
    )
    assert lossy_text(KAFKA_FEATURES, named_already) == ""
    lossless = LevelResult(feature=METADATA_VERSION, old=22, new=20, error="X", why="refused")
    assert lossy_text(KAFKA_FEATURES, lossless) == ""
    up = LevelResult(feature=METADATA_VERSION, old=16, new=24, error="X", why="refused")
    assert lossy_text(KAFKA_FEATURES, up) == ""


def test_a_group_shows_all_native_features_and_a_cluster_all_that_any_node_knows():
    known = {row.name for row in NATIVE_FEATURES} - {TOPOLOGY_VERSION}
    assert group().features == tuple(sorted(known))
    assert "future.version" in cluster(future=3).features
    for changed in (
        {"supported": {TOPOLOGY_VERSION: LevelRange(min=1, max=2)}},
        {"finalized": FinalizedLevels(levels={TOPOLOGY_VERSION: 2})},
    ):
        assert replace(group(), **changed).features == tuple(sorted(known | {TOPOLOGY_VERSION}))


def test_versions_of_an_application_are_raised_and_lowered_by_name_only():
    ranges = {TOPOLOGY_VERSION: LevelRange(min=1, max=7), TASK_PLACEMENT: LevelRange(min=1, max=2)}
    described = replace(group(), supported=ranges)
    assert plain(raise_all(described, None)) == {TASK_PLACEMENT: 2}
    finalized = FinalizedLevels(levels={TOPOLOGY_VERSION: 7})
    assert lower_all(replace(described, finalized=finalized), None, SAFE) == ()
    for text in ("1", "7", "32767"):
        found = named(described, features=[f"{TOPOLOGY_VERSION}={text}"])
        assert found == {TOPOLOGY_VERSION: int(text)}
    for text in ("x", "-1", "9" * 5000):
        with pytest.raises(ConfigError, match=r"give the number of version, 1 to 32767"):
            named(described, features=[f"{TOPOLOGY_VERSION}={text}"])
    nodes = [NodeSupport(node_id="m", ranges={TOPOLOGY_VERSION: LevelRange(min=2, max=7)})]
    assert raised_minimums(finalized, {}, nodes) == {}, "an application may be bounced back"
