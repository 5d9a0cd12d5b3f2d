from dataclasses import FrozenInstanceError, fields
from typing import get_args

import pytest

from probing import AssignmentReceived, Command, Event, RejoinNow


def test_every_command_carries_its_rule_and_a_sentence():
    for command in get_args(Command):
        assert [field.name for field in fields(command)][-2:] == ["rule", "why"]


def test_events_are_named_in_the_past_tense_and_frozen():
    for event in get_args(Event):
        assert event.__name__.endswith("ed")
        assert hasattr(event, "__slots__")
    with pytest.raises(FrozenInstanceError):
        AssignmentReceived(received_version=3).now_ms = 1


def test_two_numbers_of_the_same_kind_have_to_be_named():
    with pytest.raises(TypeError):
        AssignmentReceived(3, 4)
    with pytest.raises(TypeError):
        RejoinNow(3, "rule", "why")
