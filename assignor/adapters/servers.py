"""Bootstrap servers, as users give them to any client: `host:port`, several, comma separated.

Clients try to connect to almost any text until their time is over, and call that a timeout.
"""

from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Any, Final

from assignor.config import refused
from encoding import shown

DEFAULT_PORT: Final = 9092
_PORT_DIGITS: Final = 5
_SCHEME: Final = "://"


def split_server(server: str) -> tuple[str, int] | None:
    """Return host and port of `host:port`, `[host]:port` or `host`; None if it is malformed.

    >>> split_server("[::1]:9093"), split_server("::1"), split_server("a:b:1")
    (('::1', 9093), ('::1', 9092), None)
    """
    if server.count(":") > 1 and not server.startswith("["):
        with suppress(ValueError):
            return (server, DEFAULT_PORT) if not IPv6Address(server).is_unspecified else None
        return None
    host, bracket, rest = server.rpartition("]")
    if not bracket:
        host, _, rest = server.partition(":")
        rest = f":{rest}" if rest or ":" in server else ""
    host = host.removeprefix("[")
    port = rest.removeprefix(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS
    if not host or (rest and not (is_number and 0 < int(port) < 2**16)):
        return None
    return host, int(port) if port else DEFAULT_PORT


def parse_servers(text: str) -> tuple[str, ...]:
    """Return the servers of a comma-separated list.

    Raises:
        ValueError: the list is empty, or an entry is not `host:port`.
    """
    servers = _named(text.split(","))
    wrong = [server for server in servers if split_server(server) is None]
    if wrong or not servers:
        raise ValueError(
            f"{shown((wrong or [text])[0])!r} is not a server; give host:port[,host:port]"
        )
    return servers


def servers_text(servers: str | Collection[str]) -> str:
    """Return checked bootstrap servers as one text, whatever form they were given in.

    >>> servers_text(["PLAINTEXT://b:2", "a:1"]), servers_text("a:1, b:2")
    ('a:1,b:2', 'a:1,b:2')
    """
    given = servers.split(",") if isinstance(servers, str) else servers
    return ",".join(sorted({each.rpartition(_SCHEME)[2] for each in _named(given)}))


def check_servers(
    servers: Any,
    *,
    has_scheme: bool,
    name: str = "bootstrap_servers",
    is_text: bool = False,
) -> tuple[str, ...]:
    """Return the bootstrap servers of a client, checked before it tries to connect to them.

    Args:
        servers: as given: a comma-separated text, or several.
        has_scheme: whether the client drops a scheme in front, as in `PLAINTEXT://host:port`.
        name: of the setting.
        is_text: whether the client takes a text only.

    Raises:
        ConfigError: they are not; the message shows the first that is no server.
    """
    given = servers.split(",") if isinstance(servers, str) else servers
    wanted = "host:port, or " + (
        "several in one text, with commas" if is_text else "a list of these"
    )
    if is_text and not isinstance(servers, str):
        raise refused(name, servers, wanted)
    if not isinstance(given, Collection) or not all(isinstance(each, str) for each in given):
        raise refused(name, servers, wanted)
    named = _named(given)
    for each in named:
        if split_server(each.rpartition(_SCHEME)[2] if has_scheme else each) is None:
            raise refused(name, each, wanted)
    if not named:
        raise refused(name, servers, wanted)
    return named


def _named(servers: Collection[str]) -> tuple[str, ...]:
    return tuple(each.strip() for each in servers if each.strip())
