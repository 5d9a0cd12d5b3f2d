import pytest

from encoding import EMULATED_VERSIONS, KNOWN_VERSIONS
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    KAFKA_FEATURES,
    KAFKA_RELEASES,
    METADATA_VERSION,
    NATIVE_FEATURES,
    PERSISTENT_METADATA,
    TOPOLOGY_VERSION,
    FeatureError,
    LevelRange,
    default_levels,
    find_kafka_release,
    native_features,
)

# From the classes of Kafka 4.4.0: the levels that a downgrade undoes without a loss.
COMPATIBLE_BACK = {2, 4, 9, 10, 12, 16, *range(18, 23), *range(24, 30), 31}

TABLES = [KAFKA_FEATURES, NATIVE_FEATURES]


@pytest.mark.kip("778-1", "core")
def test_metadata_version_has_every_released_level_and_whether_it_can_be_lowered():
    feature = KAFKA_FEATURES.named(METADATA_VERSION)
    assert [level.number for level in feature.levels] == list(
        range(1, KAFKA_RELEASES[-1].metadata[1] + 1)
    )
    assert {level.number for level in feature.levels if level.compatible_back} == COMPATIBLE_BACK
    assert [feature.find(n).name for n in (1, 7, 19, 21, 25, 30, 33)] == [
        "3.0-IV1",
        "3.3-IV3",
        "3.7-IV4",
        "3.9-IV0",
        "4.0-IV3",
        "4.3-IV0",
        "4.4-IV2",
    ]
    assert all(level.changed for level in feature.levels)


@pytest.mark.kip("778-1", "core")
@pytest.mark.parametrize(
    ("series", "low", "high"),
    [
        ("3.2", 1, 1),
        ("3.3", 1, 7),
        ("3.4", 1, 8),
        ("3.5", 1, 11),
        ("3.6", 1, 14),
        ("3.7", 1, 19),
        ("3.8", 1, 20),
        ("3.9.2", 1, 21),
        ("4.0", 7, 25),
        ("4.1", 7, 27),
        ("4.2", 7, 29),
        ("4.3.1", 7, 30),
        ("4.4.0", 7, 33),
    ],
)
def test_every_release_supports_what_its_programs_advertise(series, low, high):
    ranges = find_kafka_release(series).ranges
    assert ranges[METADATA_VERSION] == LevelRange(min=low, max=high)
    assert 0 not in ranges[METADATA_VERSION]
    assert all(0 in ranges[name] for name in ranges if name != METADATA_VERSION)


def test_a_release_since_3_3_supports_the_levels_that_it_and_earlier_ones_brought():
    order = [release.series for release in KAFKA_RELEASES]
    for release in KAFKA_RELEASES[order.index("3.3") :]:
        brought = [
            level.number
            for level in KAFKA_FEATURES.named(METADATA_VERSION).levels
            if order.index(level.release) <= order.index(release.series)
        ]
        assert max(brought) == release.metadata[1]


def test_all_tables_are_ascending_named_and_without_a_dangling_requirement():
    for table in TABLES:
        names = [feature.name for feature in table]
        assert names == sorted(set(names))
        for feature in table:
            numbers = [level.number for level in feature.levels]
            assert numbers == sorted(set(numbers))
            for level in feature.levels:
                for name, least in level.requires:
                    assert table.named(name).find(least) is not None
                    assert table.unmet(feature.name, level.number, {}) is not None


@pytest.mark.parametrize(
    ("text", "number"), [("21", 21), ("3.9-IV0", 21), ("3.9", 21), ("3.3", 7), ("3.0-IV1", 1)]
)
def test_a_level_is_named_by_its_number_its_name_or_a_release(text, number):
    assert KAFKA_FEATURES.named(METADATA_VERSION).parse_level(text).number == number


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("32767", 32_767), ("32768", None)])
def test_a_level_that_programs_define_is_any_number_that_fits_a_record(text, number):
    feature = NATIVE_FEATURES.named(TOPOLOGY_VERSION)
    if number is None:
        with pytest.raises(FeatureError, match=r"no level '32768'.* 1 to 32767"):
            feature.parse_level(text)
    else:
        assert feature.parse_level(text).number == number


def test_a_name_that_is_no_level_is_answered_with_those_that_are():
    with pytest.raises(FeatureError, match=r"no level '9\.9'; choose from 1 \(3\.0-IV1\), 2"):
        KAFKA_FEATURES.named(METADATA_VERSION).parse_level("9.9")
    with pytest.raises(FeatureError, match="no feature 'metadata'; choose from elig"):
        KAFKA_FEATURES.named("metadata")
    with pytest.raises(
        FeatureError, match=rf"'2\.8'.*choose from 3\.0 to {KAFKA_RELEASES[-1].series}"
    ):
        find_kafka_release("2.8")


@pytest.mark.parametrize(
    ("level", "others"),
    [
        (20, {}),
        (21, {"kraft.version": 1}),
        (22, {"kraft.version": 1, "group.version": 1}),
        (25, {"kraft.version": 1, "group.version": 1, "transaction.version": 2}),
    ],
)
def test_a_new_cluster_gets_the_features_whose_time_has_come(level, others):
    assert default_levels(level) == {METADATA_VERSION: level} | others


def test_the_defaults_of_a_release_are_supported_by_it():
    for release in KAFKA_RELEASES:
        for name, level in default_levels(release.metadata[1]).items():
            assert level in release.ranges[name], (release.series, name)


def test_lossy_levels_between_two_are_those_that_are_undone():
    feature = KAFKA_FEATURES.named(METADATA_VERSION)
    assert [row.number for row in feature.lossy_between(low=17, high=22)] == []
    assert [row.number for row in feature.lossy_between(low=16, high=23)] == [17, 23]


def test_levels_of_the_native_protocol_are_the_versions_of_the_wire():
    protocol = NATIVE_FEATURES.named(ASSIGNMENT_PROTOCOL)
    assert [level.number for level in protocol.levels] == list(KNOWN_VERSIONS)
    assert all(level.compatible_back for level in protocol.levels)
    later = native_features((*KNOWN_VERSIONS, *EMULATED_VERSIONS)).named(ASSIGNMENT_PROTOCOL)
    assert [level.number for level in later.levels][-2:] == list(EMULATED_VERSIONS)


def test_only_a_raised_persisted_format_prevents_a_native_rollback():
    lossy = {
        feature.name: [level.number for level in feature.levels if not level.compatible_back]
        for feature in NATIVE_FEATURES
    }
    assert {name: numbers for name, numbers in lossy.items() if numbers} == {
        PERSISTENT_METADATA: [2]
    }


def test_a_program_that_knows_a_whole_table_advertises_all_of_it():
    ranges = NATIVE_FEATURES.whole_ranges()
    assert ranges[ASSIGNMENT_PROTOCOL] == LevelRange(min=1, max=101)
    assert KAFKA_FEATURES.whole_ranges()["transaction.version"].advertised == (0, 2)
