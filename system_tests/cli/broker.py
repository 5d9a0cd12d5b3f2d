"""The command that runs a broker, embedded or real, until it is stopped."""

import asyncio
import json
import logging
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from assignor.cli import BadInput, Command, EnvironmentFailed, format_option
from assignor.cli.toolkit import absent_extra
from assignor.interrupts import handle_interrupts
from probing import ReleaseError
from system_tests import broker as broker_package
from system_tests.broker import TEST_COORDINATOR, BrokerConfig
from system_tests.cli.options import given_among
from system_tests.coordinator import CoordinatorConfig
from system_tests.errors import EnvironmentFailureError

_PORT_MAX = 65_535
_OF_EMBEDDED = (
    "host",
    "nodes",
    "auto_create_topics",
    "initial_rebalance_delay_ms",
    "verbose",
)
_OF_REAL = ("users", "key_store")


def _parse_topics(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    topics: dict[str, int] = {}
    for value in values:
        name, _, number = value.partition(":")
        if not name or not (number or "1").isdecimal() or int(number or 1) < 1:
            raise click.BadParameter(f"{value!r} is not NAME or NAME:PARTITIONS")
        topics[name] = int(number or 1)
    return topics


def _parse_users(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    users: dict[str, str] = {}
    for value in values:
        name, _, password = value.partition(":")
        if not re.fullmatch(r"[\w.-]+", name) or not re.fullmatch(r"[\w.-]+", password):
            raise click.BadParameter(
                f"{name!r} has no password, or one with other characters than letters, digits, "
                "_, . and -; give NAME:PASSWORD"
            )
        users[name] = password
    return users


@click.command(
    "broker",
    cls=Command,
    examples="""
PROGRAM broker --port 9092 --topic words:4 --topic counts:4
PROGRAM broker --port 0 --format json
PROGRAM broker --kafka 4.4 --topic words:4
PROGRAM broker --kafka 4.4 --user ann:secret --key-store broker.pem
""",
    exits={0: "stopped by a signal", 3: "the port is in use, or no real broker starts"},
)
@click.option(
    "--kafka",
    "release",
    metavar="RELEASE",
    help="Run a real broker of this release in place of the embedded one: 4.4, 4 for its newest "
    "(extra `real`). Its data are removed at the end.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, _PORT_MAX),
    default=9092,
    show_default=True,
    help="Port of the first node; the others get the next ones. 0: any free ports.",
)
@click.option("--nodes", type=click.IntRange(1, 99), default=1, show_default=True, help="Brokers.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME[:PARTITIONS]",
    callback=_parse_topics,
    help="Create this topic at the start; may be repeated.",
)
@click.option("--auto-create-topics", is_flag=True, help="Create topics when clients name them.")
@click.option(
    "--initial-rebalance-delay-ms",
    type=click.IntRange(0),
    default=TEST_COORDINATOR.initial_rebalance_delay_ms,
    show_default=True,
    help="How long the first rebalance of a group waits for more members.",
)
@click.option("--verbose", is_flag=True, help="Log group events to stderr.")
@click.option(
    "--user",
    "users",
    multiple=True,
    metavar="NAME:PASSWORD",
    callback=_parse_users,
    help="With --kafka: a further listener for clients that log in (SASL/PLAIN); may be repeated. "
    "The first user may do everything, the others nothing until kafka-acls.sh grants it.",
)
@click.option(
    "--key-store",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --kafka: a PEM file with a key and its certificate, for a further listener with "
    "TLS, which accepts clients with that certificate; with --user one more, for TLS and login.",
)
@format_option()
def broker(
    release: str | None,
    host: str,
    port: int,
    nodes: int,
    topics: dict[str, int],
    *,
    auto_create_topics: bool,
    initial_rebalance_delay_ms: int,
    verbose: bool,
    users: dict[str, str],
    key_store: Path | None,
    form: str,
) -> None:
    """Run a Kafka broker for tests and demos, in memory or real, until SIGTERM or SIGINT."""
    if (advice := absent_extra("kafka")) is not None:
        raise EnvironmentFailed(f"the broker cannot start: {advice}")
    if port and port + nodes - 1 > _PORT_MAX:
        raise BadInput(
            f"{nodes} nodes from port {port} on exceed port {_PORT_MAX}; take a lower port"
        )
    if release is not None:
        _serve_real(release, topics, form, port=port, users=users, key_store=key_store)
        return
    if unused := given_among(_OF_REAL):
        raise BadInput(f"{unused}: the embedded broker knows no login and no TLS; add --kafka 4.4")
    config = BrokerConfig(
        host=host,
        nodes=nodes,
        ports=tuple(range(port, port + nodes)) if port else (),
        topics=topics,
        auto_create_topics=auto_create_topics,
        coordinator=CoordinatorConfig(
            initial_rebalance_delay_ms=initial_rebalance_delay_ms,
            min_session_timeout_ms=TEST_COORDINATOR.min_session_timeout_ms,
        ),
    )
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, stream=sys.stderr)
    try:
        asyncio.run(_serve(config, form))
    except OSError as error:
        raise EnvironmentFailed(
            f"cannot listen on {host}:{port}: {error.strerror or error}; "
            "choose another --host or --port (0 takes any free port)"
        ) from None
    except ValueError as error:
        raise BadInput(str(error)) from error


async def _serve(config: BrokerConfig, form: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.call_soon_threadsafe(stop.set)

    handle_interrupts(signal.SIGTERM, signal.SIGINT, first=end)
    async with broker_package.EmbeddedBroker(config) as embedded:
        log = logging.getLogger("system_tests.broker")
        embedded.subscribe(lambda event: log.info("%s", event))
        _announce(embedded.bootstrap_servers, config.topics, form)
        await stop.wait()


def _serve_real(release: str, topics: Mapping[str, int], form: str, **options: Any) -> None:
    if unused := given_among(_OF_EMBEDDED):
        raise BadInput(f"--kafka has no use for {unused}, which are of the embedded one")
    from system_tests.real import broker_release, serve_real_broker  # noqa: PLC0415 needs Java

    try:
        serve_real_broker(
            broker_release(f"kafka:{release}"),
            topics=topics,
            announce=lambda real: _announce(
                [real.bootstrap_servers], topics, form, real.secured_servers
            ),
            **options,
        )
    except ReleaseError as error:
        raise BadInput(str(error)) from error
    except EnvironmentFailureError as error:
        raise EnvironmentFailed(str(error)) from error


def _announce(
    servers: list[str], topics: Mapping[str, int], form: str, secured: Mapping[str, str] = {}
) -> None:
    if form == "json":
        found = {"listening": servers, "topics": dict(topics)}
        click.echo(json.dumps(found | ({"secured": dict(secured)} if secured else {})))
    else:
        click.echo(f"listening on {','.join(servers)}")
        for protocol, address in secured.items():
            click.echo(f"listening on {address} with security.protocol={protocol}")
    sys.stdout.flush()
