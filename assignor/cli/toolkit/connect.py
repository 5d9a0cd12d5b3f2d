"""Connection options and error handling for commands that connect to a cluster.

Exit status 3: no broker can be reached or answers. 1: the brokers refuse, or the user is not
authorized. 2: the properties file is invalid.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assignor.cli.toolkit.exit_status import EXIT_NO, AnswerIsNo, BadInput, EnvironmentFailed
from assignor.cli.toolkit.extras import missing_extra
from assignor.cli.toolkit.options import Decorator, all_of, timeout_option
from assignor.errors import ConfigError
from encoding import shown

if TYPE_CHECKING:
    from assignor.adapters.admin import Admin, Target

_TIMEOUT_S = 15.0
NO_BROKER = "no broker can be reached or answers"
"""The meaning of exit status 3."""


class ConnectFailure(EnvironmentFailed):
    """No broker can be reached or answers."""


class NotAllowed(ConnectFailure):
    """The brokers answer and refuse, or the user is not authorized: exit status 1."""

    exit_code = EXIT_NO


connect_options: Decorator = all_of(
    (
        click.option(
            "--bootstrap-server",
            metavar="HOST:PORT[,...]",
            help="Bootstrap servers; default: bootstrap.servers in --command-config.",
        ),
        click.option(
            "--command-config",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Java properties file, as for Kafka's own tools (SASL; SSL with PEM).",
        ),
        timeout_option(f"Time limit for all requests together; default: {_TIMEOUT_S:g}."),
    )
)
"""``--bootstrap-server``, ``--command-config`` and ``--timeout``; `target_of` takes the three."""


def target_of(
    bootstrap_server: str | None, command_config: Path | None, timeout: float | None
) -> "Target":
    """Return the cluster that the three connection options name.

    Raises:
        BadInput: no server is given, or the properties file is invalid.
        ConnectFailure: no Kafka client is installed.
    """
    admin = _admin_package()
    try:
        properties = admin.read_properties(command_config) if command_config else {}
        settings = admin.client_settings(properties)
        given = properties.get("default.api.timeout.ms")
        file_ms = admin.positive_milliseconds("default.api.timeout.ms", given) if given else None
    except ConfigError as error:
        raise BadInput(str(error)) from None
    servers = bootstrap_server or properties.get("bootstrap.servers")
    if not servers:
        raise BadInput("no bootstrap server is given; add --bootstrap-server HOST:PORT")
    try:
        parsed = admin.parse_servers(servers)
    except ValueError as error:
        raise BadInput(f"--bootstrap-server: {error}") from None
    default_ms = file_ms or int(_TIMEOUT_S * 1000)
    target: Target = admin.Target(
        servers=parsed,
        settings=settings,
        timeout_ms=default_ms if timeout is None else int(timeout * 1000),
    )
    return target


@contextmanager
def connected(target: "Target") -> Iterator["Admin"]:
    """Yield a connected admin client; its errors end the command.

    Raises:
        ConnectFailure: no broker answers (status 3).
        NotAllowed: the brokers refuse, or the user is not authorized (status 1).
    """
    admin = _admin_package()
    try:
        with admin.open_admin(target) as client:
            yield client
    except admin.Refused as error:
        raise NotAllowed(str(error)) from None
    except admin.BrokerError as error:
        raise ConnectFailure(str(error)) from None


def check_stopped(admin: "Admin", group_id: str) -> None:
    """Check that a group has no members.

    Raises:
        AnswerIsNo: it has some; a static member is one until its session ends.
    """
    from assignor.adapters.admin import describe_group  # noqa: PLC0415 an extra

    members = describe_group(admin, group_id).members
    if members:
        first = min(members, key=lambda member: member.member_id)
        static = "" if first.instance_id is None else f", static as {shown(first.instance_id)}"
        raise AnswerIsNo(
            f"group {shown(group_id)} has {len(members)} members, such as "
            f"{shown(first.member_id)} on {shown(first.client_host)}{static}; stop all of them, and"
            " wait for the session timeout of those that do not leave"
        )


def _admin_package() -> Any:
    try:
        from assignor.adapters import admin  # noqa: PLC0415 the client is an extra
    except ImportError as error:
        if (advice := missing_extra(error)) is None:
            raise
        raise ConnectFailure(f"this command needs a Kafka client: {advice}") from None
    return admin
