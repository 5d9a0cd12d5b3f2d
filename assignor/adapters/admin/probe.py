"""A check of each bootstrap server before a client is created: TCP, TLS and SASL login.

kafka-python reports each of these failures only as a timeout, when the time limit is over. It also
misses a wrong password, because the broker closes the connection together with its response.
"""

import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from assignor.adapters.servers import split_server

_PROBE_S: Final = 5.0
_SIZE: Final = Struct(">i")
_ANSWER_MOST: Final = 1 << 20
_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 0
_UNSUPPORTED_MECHANISM: Final = 33


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a server cannot be used; `is_refusal`: it answers, but rejects the login."""

    why: str
    is_refusal: bool = False


class _Refused(Exception):
    """The server answers, but rejects the login."""


def try_servers(
    servers: Sequence[str], settings: Mapping[str, Any], timeout_s: float
) -> dict[str, Failure]:
    """Check servers until one can be used; return the failure of each, or {} if one can be used.

    Args:
        servers: result of `parse_servers`.
        settings: keyword arguments for a kafka-python client.
        timeout_s: time limit for all servers; each has at most five seconds.
    """
    deadline = time.monotonic() + timeout_s
    tried: dict[str, Failure] = {}
    for server in servers:
        limit_s = max(0.05, min(_PROBE_S, deadline - time.monotonic()))
        failure = _try(server, settings, limit_s)
        if failure is None:
            return {}
        tried[server] = failure
    return tried


def spelled(tried: Mapping[str, Failure]) -> str:
    """Return each server with its failure, as text."""
    return "; ".join(f"{server}: {failure.why}" for server, failure in tried.items())


def _try(server: str, settings: Mapping[str, Any], limit_s: float) -> Failure | None:
    where = split_server(server)
    if where is None:
        return Failure(why="not of the form host:port")
    try:
        with socket.create_connection(where, timeout=limit_s) as connection:
            _shake_hands(connection, where[0], settings)
    except _Refused as error:
        return Failure(why=str(error), is_refusal=True)
    except TimeoutError:
        return Failure(why=f"no answer within {limit_s:.3g} s")
    except ssl.SSLCertVerificationError as error:
        return Failure(why=f"its certificate is not trusted: {error.verify_message}")
    except ssl.SSLError as error:
        return Failure(why=f"the TLS handshake failed: {error.reason or error}")
    except (OSError, UnicodeError) as error:
        return Failure(why=(getattr(error, "strerror", None) or str(error)).lower())
    return None


def _shake_hands(connection: socket.socket, host: str, settings: Mapping[str, Any]) -> None:
    """Do the TLS handshake and the SASL login, if the settings require them."""
    context = settings.get("ssl_context")
    if context is not None:
        connection = context.wrap_socket(connection, server_hostname=host)
    try:
        if settings.get("sasl_mechanism"):
            _log_in(connection, host, settings)
    finally:
        if context is not None:
            connection.close()


def _log_in(connection: socket.socket, host: str, settings: Mapping[str, Any]) -> None:
    """Try the SASL login; a server that does not answer the handshake is left to the client.

    Raises:
        _Refused: the server does not enable the mechanism, or rejects the login.
    """
    name = settings["sasl_mechanism"]
    answer = _ask(connection, SaslHandshakeRequest(mechanism=name), SaslHandshakeResponse, 1)
    if answer is None:
        return
    if answer.error_code == _UNSUPPORTED_MECHANISM:
        enabled = ", ".join(sorted(answer.mechanisms)) or "none"
        raise _Refused(f"{name} is not enabled (enabled: {enabled}); check sasl.mechanism")
    mechanism = get_sasl_mechanism(name)(host=host, **settings)
    number = _HANDSHAKE_VERSION
    while not mechanism.is_done():
        number += 1
        request = SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes())
        answer = _ask(connection, request, SaslAuthenticateResponse, number)
        if answer is None:
            # A broker closes the connection after a rejection, and the response may be lost.
            raise _Refused(
                f"the connection was closed during the login ({name}), as after a wrong user name "
                "or password; check sasl.jaas.config"
            )
        if answer.error_code:
            raise _Refused(
                f"the user name or password is rejected ({name}); check sasl.jaas.config"
            )
        try:
            mechanism.receive(bytes(answer.auth_bytes))
        except (KafkaError, ValueError, LookupError) as error:
            raise _Refused(f"its {name} response is invalid: {error}") from None


def _ask(connection: socket.socket, request: Any, response: Any, number: int) -> Any:
    """Send a request and return the response; None if the server closes the connection."""
    is_handshake = isinstance(request, SaslHandshakeRequest)
    version = _HANDSHAKE_VERSION if is_handshake else _AUTHENTICATE_VERSION
    request.API_VERSION = version
    request.with_header(correlation_id=number, client_id="assignor")
    try:
        connection.sendall(request.encode(header=True, framed=True))
        head = _read(connection, _SIZE.size)
        size = 0 if head is None else _SIZE.unpack(head)[0]
        data = _read(connection, size) if 0 < size <= _ANSWER_MOST else None
    except ConnectionError:
        return None
    return None if data is None else response.decode(data, version=version, header=True)


def _read(connection: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return None
        data += part
    return data
