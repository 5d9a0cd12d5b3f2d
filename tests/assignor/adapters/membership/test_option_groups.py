"""Keyword options of a `StreamsAssignor`: their names, defaults, groups and help texts."""

import inspect
import pydoc
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import get_type_hints

import pytest

from assignor import AssignmentConfig, ConfigError, RunningTasks, Topology
from assignor.adapters.aiokafka import StreamsAssignor as AiokafkaAssignor
from assignor.adapters.aiokafka import streams_consumer as aiokafka_consumer
from assignor.adapters.kafka_python import StreamsAssignor, streams_consumer
from assignor.adapters.membership import (
    OPTION_GROUPS,
    OPTIONS,
    MemberKeywords,
    member_options,
)
from assignor.embedding import InternalTopicSettings
from assignor.observe import LoggingHook
from assignor.option_fields import option_text

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
    names = [name for name, _ in found]
    assert sorted(set(names) ^ set(DEFAULTS)) == [], "add to DEFAULTS, or take away, the name"
    assert len(names) == len(set(names))
    assert dict(found) == DEFAULTS


# A list is taken for a tuple, too.
WIDER = {"rack_aware_assignment_tags": Sequence[str]}


def test_keywords_have_the_types_of_the_options_and_settings():
    declared = {name: option.type for name, option in OPTIONS.items()} | WIDER
    assert get_type_hints(MemberKeywords) == declared
    assert {f.name for f in fields(AssignmentConfig)} <= declared.keys()


@pytest.mark.parametrize("kind", [StreamsAssignor, AiokafkaAssignor])
def test_every_option_is_in_signature_and_help_with_text_and_default(kind):
    parameters = inspect.signature(kind).parameters
    assert list(parameters)[:2] == ["topology", "application_id"]
    assert parameters["application_id"].default is None
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    for option in OPTIONS.values():
        assert option.default is not MISSING
        assert parameters[option.name].default == option.default
        assert parameters[option.name].annotation == option.type
        assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert len(option_text(option).text) > 10
        assert f"{option.name}: {option_text(option).text.split()[0]}" in text
    others = parameters.keys() - OPTIONS.keys()
    assert others == {"topology", "application_id", "topologies"}


@pytest.mark.parametrize("kind", [StreamsAssignor, AiokafkaAssignor])
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"listner": None}, "did you mean listener"),
        ({"num_standby_replica": 1}, "did you mean num_standby_replicas"),
        ({"standby_replicas": 1}, "did you mean num_standby_replicas"),
        ({"state_directory": "s"}, "did you mean state_dir"),
        ({"num.standby.replicas": 1}, "did you mean num_standby_replicas"),
        ({"zzz": 1}, "known: acceptable_recovery_lag, "),
        ({"rebalance_protocol": "coperative"}, "'eager', 'cooperative'"),
        ({"listener": RunningTasks}, "give an instance of a subclass of assignor.TasksListener"),
        ({"listener": object()}, "assignor.TasksListener"),
        ({"hooks": LoggingHook()}, "a list of instances of assignor.RebalanceHook"),
        ({"hooks": [LoggingHook]}, "a list of instances"),
        ({"observer": "print"}, "a function"),
        ({"internal_topics": {"replication_factor": 3}}, "assignor.InternalTopicSettings"),
        ({"internal_topics": True}, "assignor.InternalTopicSettings"),
        ({"state_dir": 7}, "a path"),
        ({"state_dir": ""}, "a path that is not empty"),
        ({"level_poll_s": 0}, "seconds, above 0"),
        ({"level_poll_s": float("nan")}, "seconds, above 0"),
        ({"hold_back": "yes"}, "True or False"),
        ({"num_standby_replicas": "1"}, "a whole number"),
        ({"num_standby_replicas": 10**9}, "give a whole number, 0 to 10000"),
        ({"message_format_version": "1"}, "give a whole number, 1 or more"),
        ({"message_format_version": True}, "give a whole number, 1 or more"),
        ({"persistent_metadata_version": "2"}, "give a whole number, 1 or more, or None"),
        ({"level_source": object()}, "a function without arguments"),
        ({"level_source": lambda levels: levels}, "a function without arguments"),
        ({"observer": lambda: None}, "a function of one observation"),
        ({"strategy": lambda: None}, "a function of one GroupState"),
        ({"strategy": divmod}, "a function of one GroupState"),
        ({"strategy": "os:getpid"}, "a function of one GroupState"),
    ],
)
def test_a_wrong_option_is_refused_at_once(kind, options, why):
    with pytest.raises(ConfigError, match=re.escape(why)) as raised:
        kind(TOPOLOGY, **options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("made", [streams_consumer, aiokafka_consumer])
@pytest.mark.parametrize("value", ["false", 0, None])
@pytest.mark.parametrize("name", ["enable_auto_commit"])
def test_a_boolean_of_the_client_is_true_or_false(made, name, value):
    with pytest.raises(ConfigError, match=re.escape(f"{name}={value!r} is refused; give True or")):
        made(TOPOLOGY, group_id="app", bootstrap_servers="127.0.0.1:1", **{name: value})


def test_a_topology_of_another_kind_is_refused():
    with pytest.raises(ConfigError, match=r"give an assignor\.Topology"):
        StreamsAssignor({"words": 4})


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
