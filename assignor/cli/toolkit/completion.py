"""``completion``: prints the shell completion script of a program.

The command is the same in all three programs; click generates the script.
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
    short_help="Print the shell completion script.",
    examples=_EXAMPLES,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the shell completion script.

    The shell then completes commands, options, releases, strategies and files. Bash must be 4.4 or
    newer.
    """
    root = context.find_root()
    name = root.info_name or ""
    written_for = get_completion_class(shell)
    if written_for is None:
        raise BadInput(f"this version of click does not support {shell}; install a newer click")
    click.echo(written_for(root.command, {}, name, completion_variable(name)).source())


COMPLETION = Subcommand(
    "assignor.cli.toolkit.completion",
    "completion",
    "Print the shell completion script.",
)
"""The entry for `LazyGroup.subcommands`."""
