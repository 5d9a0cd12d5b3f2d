"""A command that connects, and servers that misbehave."""

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import click
from click.testing import CliRunner

from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.connect import connect_options, connected, target_of


@click.command(cls=Command)
@connect_options
def nodes(bootstrap_server, command_config, timeout):
    async def ask(admin):
        return await admin._describe_cluster()

    with connected(target_of(bootstrap_server, command_config, timeout)) as admin:
        for broker in admin.ask("describe the cluster", ask)["brokers"]:
            click.echo(f"broker {broker['broker_id']}")


def run(*words):
    return CliRunner().invoke(nodes, [str(word) for word in words])


@contextmanager
def broker_process(topic):
    """Run the embedded broker in a process that signals can stop; `servers` is its address."""
    command = [sys.executable, "-m", "system_tests.broker", "--port", "0", "--topic", topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.servers = process.stdout.readline().split()[-1]
            yield process
        finally:
            process.kill()


@contextmanager
def listener(on_connection):
    """A server that calls a function of the test for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve():
            with suppress(OSError):
                while True:
                    held.append(server.accept()[0])
                    with suppress(OSError):
                        on_connection(held[-1])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        # Shut down before closing: only this wakes a thread that accepts or receives.
        server.shutdown(socket.SHUT_RDWR)
        for connection in held:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join(120)
        for connection in held:
            connection.close()
        assert not thread.is_alive()


@contextmanager
def refusing_server():
    """A port that refuses connections, and that nobody else gets meanwhile."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{kept.getsockname()[1]}"


def properties(tmp_path, **given):
    file = tmp_path / "client.properties"
    file.write_text(
        "".join(f"{key.replace('_', '.')}={value}\n" for key, value in given.items()),
        encoding="utf-8",
    )
    return file
