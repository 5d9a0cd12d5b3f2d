"""The default strategy of every program is `high_availability`."""

import inspect
from dataclasses import fields

import click
import pytest

from assignor import LeaderSettings, Topology, high_availability
from assignor.adapters.aiokafka import StreamsAssignor as AiokafkaAssignor
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.cli import main as assignor_program
from assignor.stores import OffloadedPlans
from spark_assign.cli.main import main as spark_program

TOPOLOGY = (
    Topology()
    .add_source("w", topics=["words"])
    .add_processor("c", parents=["w"])
    .add_state_store("counts", processors=["c"])
)


def test_a_leader_without_a_strategy_places_by_high_availability():
    [default] = [option.default for option in fields(LeaderSettings) if option.name == "strategy"]
    assert default is high_availability


def test_plans_that_are_made_elsewhere_have_the_same_default():
    default = inspect.signature(OffloadedPlans.__init__).parameters["strategy"].default
    assert default is high_availability


@pytest.mark.parametrize("kind", [StreamsAssignor, AiokafkaAssignor])
@pytest.mark.parametrize("options", [{}, {"internal_topics": None}, {"release": "2.3"}])
def test_members_of_both_clients_lead_by_high_availability(kind, options):
    assignor = kind(TOPOLOGY, application_id="app", **options)
    try:
        assert assignor._driver.member.leader.strategy is high_availability
    finally:
        assignor.close()


def options_of(command, path=()):
    """(path, option) of every option of a program."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            yield from options_of(below, (*path, name))
        return
    yield from ((path, option) for option in command.params)


@pytest.mark.parametrize("program", [assignor_program, spark_program])
def test_every_command_with_a_strategy_has_the_same_default(program):
    found = [(p, option) for p, option in options_of(program) if "--strategy" in option.opts]
    assert found
    assert {p: option.default for p, option in found if option.default != "high_availability"} == {}
