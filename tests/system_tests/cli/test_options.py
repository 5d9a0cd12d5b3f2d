"""Options that subcommands share, options of dataclasses, and the command line to repeat."""

from dataclasses import dataclass, field

import click
import pytest
from click.testing import CliRunner

from assignor.cli import Command
from system_tests.cli.options import (
    given_again,
    group_options,
    options_of,
    partitions_option,
    read_options,
    refuse,
)
from system_tests.option_fields import option


@click.command("grow", cls=Command)
@group_options(members=5, threads=2)
@partitions_option()
def grow(**given):
    click.echo(given_again(without={"partitions"}))
    if given["members"] == 5:
        refuse("no more of them; take 4")


def run(arguments):
    return CliRunner().invoke(grow, arguments.split())


def test_what_was_given_is_given_again_and_defaults_are_not():
    done = run("--to 2.0 --static --from 1.1 --partitions 9")
    assert done.stdout == "rolling-bounce grow --from 1.1 --to 2.0 --static\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--from 1.1", "missing option '--to'"),
        ("--from 1.1 --to 2.0 --members 6", "6 is not in the range 1<=x<=5"),
        ("--from 1.1 --to 2.0 --threads 3", "3 is not in the range 1<=x<=2"),
        ("--from 1.1 --to 2.0 --members 5", "grow: no more of them; take 4."),
    ],
)
def test_what_does_not_fit_ends_with_2(arguments, expected):
    done = run(arguments)
    assert done.exit_code == 2
    assert expected in done.stderr


@dataclass(frozen=True, kw_only=True)
class Water:
    hot: bool = field(default=False, metadata=option("Hot."))


@dataclass(frozen=True, kw_only=True)
class Plant:
    rows: int = field(default=3, metadata=option("Rows.", least=1, most=9))
    hours: float = field(default=1.5, metadata=option("Hours.", flag="--time"))
    kind: str = field(default="tree", metadata=option("Kind.", choices=("tree", "bush")))
    pot: str | None = field(default=None, metadata=option("Pot.", none="no-pot"))
    water: Water = field(default_factory=Water)
    inner: int = 7


@click.command("plant", cls=Command)
@options_of(Plant)
def plant(**values):
    click.echo(repr(read_options(Plant, values)))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", Plant()),
        ("--rows 4 --time 2 --kind bush", Plant(rows=4, hours=2.0, kind="bush")),
        ("--pot clay --hot", Plant(pot="clay", water=Water(hot=True))),
        ("--pot no-pot", Plant()),
    ],
)
def test_a_dataclass_declares_its_options_once(arguments, expected):
    done = CliRunner().invoke(plant, arguments.split())
    assert (done.exit_code, done.stdout) == (0, f"{expected!r}\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--rows 10", "10 is not in the range 1<=x<=9"),
        ("--time nan", "--time must be a finite number, not nan"),
        ("--kind stone", "'stone' is not one of"),
        ("--inner 3", "no such option --inner"),
    ],
)
def test_values_that_a_dataclass_does_not_declare_end_with_2(arguments, expected):
    done = CliRunner().invoke(plant, arguments.split())
    assert done.exit_code == 2
    assert expected.lower() in done.stderr.lower()
