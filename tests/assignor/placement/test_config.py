"""Settings: both spellings, unknown names, ranges."""

import pytest

from assignor import AssignmentConfig, ConfigError
from assignor.config import config_from_mapping, setting_value


def test_both_spellings_are_read():
    dotted = config_from_mapping(
        {"num.standby.replicas": 2, "rack.aware.assignment.traffic_cost": 7}
    )
    python = AssignmentConfig(num_standby_replicas=2, rack_aware_assignment_traffic_cost=7)
    assert dotted == python


def test_an_unknown_name_is_refused_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"did you mean num\.standby\.replicas\?"):
        config_from_mapping({"num.standby.replica": 1})


def test_a_setting_in_both_spellings_is_refused():
    with pytest.raises(ConfigError, match="is also given as max_warmup_replicas"):
        config_from_mapping({"max.warmup.replicas": 1, "max_warmup_replicas": 2})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_standby_replicas", -1),
        ("num_standby_replicas", True),
        ("max_warmup_replicas", 0),
        ("probing_rebalance_interval_ms", 59_999),
        ("acceptable_recovery_lag", "10"),
        ("rack_aware_assignment_strategy", "fastest"),
        ("rack_aware_assignment_traffic_cost", -1),
        ("rack_aware_assignment_tags", ("a",) * 6),
        ("rack_aware_assignment_tags", ("k" * 21,)),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_name_in_kafka(name, value):
    with pytest.raises(ConfigError, match=name.split("_")[0]):
        AssignmentConfig(**{name: value})


def test_lists_from_files_become_tuples():
    config = config_from_mapping({"rack.aware.assignment.tags": ["zone"]})
    assert config.rack_aware_assignment_tags == ("zone",)


@pytest.mark.parametrize(
    "settings",
    [
        {"num.standby.replicas": 10**5_000 * -1},
        {"num.standby.replicas": "9" * 5_000},
        {"num.standby.replicas": "x\n2026 ERROR\x1b[2J"},
        {"rack.aware.assignment.tags": ["x" * 5_000]},
        {"x\n2026 ERROR\x1b[2J": 1},
        {"k" * 100_000: 1},
    ],
)
def test_whatever_is_given_the_error_is_one_short_line(settings):
    with pytest.raises(ConfigError) as refused:
        config_from_mapping(settings)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 100_000, "\ud800"])
def test_a_value_that_is_no_json_is_the_text_itself(text):
    assert setting_value("num.standby.replicas", text) == text
