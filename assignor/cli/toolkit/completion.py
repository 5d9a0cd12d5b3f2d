"""``completion``: the few lines that make a shell complete a program's commands and options.

The same command in all three programs; click writes the lines.
"""

import click
from click.shell_completion import get_completion_class

from assignor.cli.toolkit.commands import Command, Subcommand, completion_variable
from assignor.cli.toolkit.exit_status import BadInput

_EXAMPLES = """
eval "$(PROGRAM completion bash)"  # in ~/.bashrc
eval "$(PROGRAM completion zsh)"  # in ~/.zshrc, after compinit
PROGRAM completion fish | source  # in ~/.config/fish/config.fish
"""


@click.command(
    "completion",
    cls=Command,
    short_help="Print what makes a shell complete commands and options.",
    examples=_EXAMPLES,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options.

    Names of commands, options, releases, strategies and files are completed. Bash has to be 4.4 or
    newer.
    """
    root = context.find_root()
    name = root.info_name or ""
    written_for = get_completion_class(shell)
    if written_for is None:
        raise BadInput(f"this version of click knows nothing of {shell}; install a newer one")
    click.echo(written_for(root.command, {}, name, completion_variable(name)).source())


COMPLETION = Subcommand(
    "assignor.cli.toolkit.completion",
    "completion",
    "Print what makes a shell complete commands and options.",
)
"""The row of a program's table."""
