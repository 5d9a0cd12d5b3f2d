"""Keyword options of a `StreamsAssignor`: their names, defaults and groups."""

from dataclasses import fields, is_dataclass
from typing import get_type_hints

import pytest

from assignor import AssignmentConfig, ConfigError, Topology
from assignor.adapters.aiokafka import StreamsAssignor as AiokafkaAssignor
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.adapters.membership import OPTION_GROUPS, MemberKeywords, member_options
from assignor.embedding import InternalTopicSettings

TOPOLOGY = Topology().add_source("lines", topics=["lines"])
DEFAULTS = {
    "client_tags": None,
    "endpoint": None,
    "hold_back": False,
    "hooks": None,
    "internal_topics": InternalTopicSettings(),
    "level_poll_s": 60.0,
    "level_source": None,
    "listener": None,
    "message_format_version": 1,
    "observer": None,
    "persistent_metadata_version": None,
    "process_id": None,
    "rack": None,
    "rebalance_protocol": "eager",
    "release": "native",
    "start_version": None,
    "state_dir": None,
    "strategy": None,
    "upgrade_from": None,
}


def test_options_have_these_names_and_defaults_and_each_is_in_one_group():
    found = [
        (option.name, option.default) for kind in OPTION_GROUPS.values() for option in fields(kind)
    ]
    assert sorted(name for name, _ in found) == sorted(DEFAULTS)
    assert dict(found) == DEFAULTS


def test_keywords_have_the_types_of_the_options_and_settings():
    options = {}
    for kind in OPTION_GROUPS.values():
        options |= get_type_hints(kind)
    keywords = get_type_hints(MemberKeywords)
    settings = {field.name for field in fields(AssignmentConfig)}
    assert {name: keywords[name] for name in keywords if name not in settings} == options
    assert keywords.keys() == options.keys() | settings


def test_keywords_are_grouped_and_the_others_are_settings():
    keywords = {"endpoint": "h:1", "upgrade_from": "2.3", "num_standby_replicas": 2}
    options = member_options(TOPOLOGY, "app", keywords)
    assert options.identity.endpoint == "h:1"
    assert options.protocol.upgrade_from == "2.3"
    assert options.settings == {"num_standby_replicas": 2}
    assert keywords == {"endpoint": "h:1", "upgrade_from": "2.3", "num_standby_replicas": 2}
    groups = [getattr(options, name) for name in OPTION_GROUPS]
    assert all(is_dataclass(group) for group in groups)


@pytest.mark.parametrize("kind", [StreamsAssignor, AiokafkaAssignor])
def test_an_unknown_option_and_a_missing_one_are_errors(kind):
    with pytest.raises(ConfigError, match="did you mean num_standby_replicas"):
        kind(TOPOLOGY, application_id="app", num_standby_replica=1)
    with pytest.raises(TypeError, match="topology"):
        kind(application_id="app")
