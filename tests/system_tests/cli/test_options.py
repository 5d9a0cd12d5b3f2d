"""Options that subcommands share, and the command line that is given again."""

import click
import pytest
from click.testing import CliRunner

from assignor.cli import Command
from system_tests.cli.options import given_again, group_options, partitions_option, refuse


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
