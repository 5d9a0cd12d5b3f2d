"""Options and errors of commands that change state, topics and offsets of stopped members.

Without ``--execute`` they show what they would do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from assignor.cli.toolkit.connect import connect_options
from assignor.cli.toolkit.exit_status import AnswerIsNo, BadInput, EnvironmentFailed
from assignor.cli.toolkit.options import Decorator, all_of, format_option
from assignor.embedding import ClusterUnavailable, MemberStopped, StateDirectoryLocked
from assignor.errors import ConfigError
from assignor.stores import StoreError


def state_options(*, several: bool, state_help: str, execute_help: str) -> Decorator:
    """Return the options: state directories, the cluster, ``--execute`` and ``--format``.

    Args:
        several: whether there may be several directories, or none; else one is needed.
        state_help: of ``--state-dir``.
        execute_help: of ``--execute``.
    """
    return all_of(
        (
            click.option(
                "--state-dir",
                "state_dirs" if several else "state_dir",
                type=click.Path(file_okay=False, exists=True, path_type=Path),
                multiple=several,
                required=not several,
                help=state_help,
            ),
            connect_options,
            click.option("--execute", is_flag=True, help=execute_help),
            format_option(),
        )
    )


@contextmanager
def state_errors() -> Iterator[None]:
    """Have errors of state directories end the command with their exit status."""
    try:
        yield
    except (StateDirectoryLocked, MemberStopped) as error:
        raise AnswerIsNo(str(error)) from None
    except ConfigError as error:
        raise BadInput(f"--state-dir: {error}") from None
    except (ClusterUnavailable, StoreError) as error:
        raise EnvironmentFailed(str(error)) from None
