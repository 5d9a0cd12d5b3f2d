"""The command that runs an embedded broker until it is stopped."""

import asyncio
import json
import logging
import signal
import sys

import click

from assignor.cli import BadInput, Command, EnvironmentFailed, format_option
from assignor.cli.toolkit import absent_extra
from assignor.interrupts import handle_interrupts
from system_tests import broker as broker_package
from system_tests.broker.config import TEST_COORDINATOR, BrokerConfig
from system_tests.coordinator import CoordinatorConfig

_PORT_MAX = 65_535


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


@click.command(
    "system_tests.broker",
    cls=Command,
    examples="""
python -m PROGRAM --port 9092 --topic words:4 --topic counts:4
python -m PROGRAM --port 0 --format json
""",
    exits={0: "stopped by a signal", 3: "the port is in use"},
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
@format_option()
def main(
    host: str,
    port: int,
    nodes: int,
    topics: dict[str, int],
    *,
    auto_create_topics: bool,
    initial_rebalance_delay_ms: int,
    verbose: bool,
    form: str,
) -> None:
    """Run an in-memory Kafka broker for tests and demos until SIGTERM or SIGINT."""
    if (advice := absent_extra("kafka")) is not None:
        raise EnvironmentFailed(f"the broker cannot start: {advice}")
    if port and port + nodes - 1 > _PORT_MAX:
        raise BadInput(
            f"{nodes} nodes from port {port} on exceed port {_PORT_MAX}; take a lower port"
        )
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
    async with broker_package.EmbeddedBroker(config) as broker:
        log = logging.getLogger("system_tests.broker")
        broker.subscribe(lambda event: log.info("%s", event))
        servers = broker.bootstrap_servers
        if form == "json":
            click.echo(json.dumps({"listening": servers, "topics": dict(config.topics)}))
        else:
            click.echo(f"listening on {','.join(servers)}")
        sys.stdout.flush()
        await stop.wait()
