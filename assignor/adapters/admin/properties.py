"""Conversion of Java properties files for Kafka's tools into kafka-python settings.

An unknown key is an error, and the message suggests the nearest known one: a security setting must
not be ignored silently. Certificates must be PEM, in files or inline (KIP-651); Python cannot read
Java key stores.

Messages contain the key and the allowed values. Of given values they show only milliseconds,
because a password may have been written after the wrong key.
"""

import difflib
import os
import select
import shlex
import ssl
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import javaproperties

from assignor.errors import ConfigError
from encoding import shown

FILE_LIMIT: Final = 1 << 20
"""Most bytes of a properties file, or of a PEM file that it names."""

_DIGITS_MOST: Final = 10  # of a number of milliseconds below 2**31
_KEY_MOST: Final = 80  # characters of an unknown key in an error
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MODULE_BY_MECHANISM: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_TLS_VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_NUMBERS: Final = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
}
_SSL_KEYS: Final = (
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
)
_STORE_PASSWORDS: Final = ("ssl.keystore.password", "ssl.truststore.password")
KNOWN_KEYS: Final = tuple(
    sorted(
        (
            *("bootstrap.servers", "client.dns.lookup", "client.id", "default.api.timeout.ms"),
            *("sasl.jaas.config", "sasl.mechanism", "security.protocol"),
            *_NUMBERS,
            *_SSL_KEYS,
            *_STORE_PASSWORDS,
        )
    )
)
"""All supported keys, sorted."""

Properties = Mapping[str, str]


_PIPE_S: Final = 10.0
"""How long a pipe may take in place of a file."""


def read_properties(path: Path) -> dict[str, str]:
    """Return the keys and values of a properties file.

    Raises:
        ConfigError: the file cannot be read, is too large, or has an invalid escape.
    """
    # Java reads these files as Latin-1; other characters are escaped.
    text = _bytes_of(path, shown(path)).decode("latin-1")
    try:
        return dict(javaproperties.loads(text))
    except ValueError:
        raise ConfigError(
            f"{shown(path)} is not a valid Java properties file: \\u must be followed by four "
            "hexadecimal digits; write a backslash in a value as \\\\"
        ) from None


def client_settings(properties: Properties) -> dict[str, Any]:
    """Return the keyword arguments of a kafka-python client for these properties.

    `bootstrap.servers` and `default.api.timeout.ms` are left to the caller.

    Raises:
        ConfigError: a key is unknown, a value is invalid, a SASL mechanism or key store type is not
            supported, or a file cannot be read.
    """
    _check_keys(properties)
    protocol = _one_of(properties, "security.protocol", _PROTOCOLS, "PLAINTEXT")
    settings: dict[str, Any] = {"security_protocol": protocol}
    for key, name in _NUMBERS.items():
        if key in properties:
            settings[name] = positive_milliseconds(key, properties[key])
    for key, name in (("client.id", "client_id"), ("client.dns.lookup", "client_dns_lookup")):
        if properties.get(key):
            settings[name] = properties[key]
    if protocol.startswith("SASL"):
        settings |= _sasl(properties)
    elif "sasl.jaas.config" in properties or "sasl.mechanism" in properties:
        raise ConfigError(
            f"sasl settings are given, but security.protocol is {protocol}; "
            "set it to SASL_SSL (or SASL_PLAINTEXT), or remove the sasl settings"
        )
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(properties)
    elif any(key in properties for key in _SSL_KEYS):
        raise ConfigError(
            f"ssl settings are given, but security.protocol is {protocol}; "
            "set it to SSL or SASL_SSL, or remove the ssl settings"
        )
    return settings


def positive_milliseconds(key: str, text: str) -> int:
    """Return a number of milliseconds, 1 or more.

    Raises:
        ConfigError: the text is not such a number.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST
    if not (is_number and 0 < int(text) < 2**31):
        raise ConfigError(f"{key} is {shown(text)!r}; give a whole number above 0")
    return int(text)


def _check_keys(properties: Properties) -> None:
    for key in sorted(properties):
        if key not in KNOWN_KEYS:
            near = difflib.get_close_matches(key[:_KEY_MOST], KNOWN_KEYS, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(KNOWN_KEYS)}"
            raise ConfigError(f"{shown(key, limit=_KEY_MOST)} is not supported; {hint}")


def _one_of(properties: Properties, key: str, allowed: tuple[str, ...], default: str) -> str:
    value = properties.get(key, default).strip()
    if value not in allowed:
        raise _not_supported(key, allowed)
    return value


def _not_supported(key: str, allowed: Iterable[str]) -> ConfigError:
    return ConfigError(
        f"{key} has a value that is not supported; supported are {', '.join(allowed)}"
    )


def _sasl(properties: Properties) -> dict[str, Any]:
    if "sasl.mechanism" not in properties:
        raise ConfigError(
            "sasl.mechanism is missing (Kafka's default GSSAPI is not supported); "
            f"set one of {', '.join(_MODULE_BY_MECHANISM)}"
        )
    mechanism = _one_of(properties, "sasl.mechanism", tuple(_MODULE_BY_MECHANISM), "")
    user, password = jaas_login(properties.get("sasl.jaas.config", ""), mechanism)
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def jaas_login(text: str, mechanism: str) -> tuple[str, str]:
    """Return user name and password of a `sasl.jaas.config`.

    It must have one entry: `package.Module flag key="value" ... ;`. Messages never show a value.

    Raises:
        ConfigError: the entry is malformed, has another mechanism's module, or lacks a value.
    """
    module = _MODULE_BY_MECHANISM[mechanism]
    form = f'sasl.jaas.config must be `...{module} required username="..." password="...";`'
    words = shlex.shlex(text, posix=True, punctuation_chars=";")
    words.whitespace_split, words.commenters = True, ""
    try:
        found = list(words)
    except ValueError:
        raise ConfigError(f"{form}; a quote is not closed") from None
    if found.count(";") != 1 or found[-1:] != [";"] or len(found) < 3:  # noqa: PLR2004 name flag ;
        raise ConfigError(f"{form}; it must be one entry that ends with a semicolon")
    name = found[0].rsplit(".", 1)[-1]
    if name != module:
        other = name if name in _MODULE_BY_MECHANISM.values() else "another module"
        raise ConfigError(f"{form}; it names {other}, but sasl.mechanism is {mechanism}")
    options = dict(option.partition("=")[::2] for option in found[2:-1])
    missing = [key for key in ("username", "password") if not options.get(key)]
    if missing:
        raise ConfigError(f"{form}; {' and '.join(missing)} missing")
    return options["username"], options["password"]


def _ssl_context(properties: Properties) -> ssl.SSLContext:
    for key in _STORE_PASSWORDS:
        if properties.get(key):
            raise ConfigError(
                f"{key} is for Java key stores, which are not supported; convert the store to "
                "PEM (keytool -importkeystore to PKCS12, then openssl pkcs12) and set type PEM"
            )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _limit_versions(context, properties)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip()
    if algorithm.lower() not in ("", "https"):
        raise ConfigError(
            "ssl.endpoint.identification.algorithm has a value that is not supported; give https, "
            "or an empty value to disable the host name check"
        )
    context.check_hostname = bool(algorithm)
    trusted = _pem(properties, "truststore", "ssl.truststore.certificates")
    try:
        if trusted is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            "the trust store has no PEM certificate; check ssl.truststore.location or "
            "ssl.truststore.certificates"
        ) from None
    _load_own(context, properties)
    return context


def _limit_versions(context: ssl.SSLContext, properties: Properties) -> None:
    names = [name.strip() for name in properties.get("ssl.enabled.protocols", "").split(",")]
    names = [name for name in names if name]
    if any(name not in _TLS_VERSIONS for name in names):
        raise _not_supported("ssl.enabled.protocols", _TLS_VERSIONS)
    if names:
        context.minimum_version = min(_TLS_VERSIONS[name] for name in names)
        context.maximum_version = max(_TLS_VERSIONS[name] for name in names)


def _load_own(context: ssl.SSLContext, properties: Properties) -> None:
    """Load the client's certificate and key, if they are given."""
    chain = properties.get("ssl.keystore.certificate.chain")
    key = properties.get("ssl.keystore.key")
    if (chain is None) != (key is None):
        raise ConfigError(
            "ssl.keystore.certificate.chain and ssl.keystore.key go together; give both or neither"
        )
    inline = None if chain is None or key is None else f"{key}\n{chain}\n"
    own = _pem(properties, "keystore", None, inline=inline)
    if own is None:
        return
    password = properties.get("ssl.key.password")
    # Python loads private keys only from files; only this user can read the file of mkstemp.
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="ascii", errors="replace") as file:
            file.write(own)
        # Without this callback openssl would prompt for a password.
        context.load_cert_chain(name, password=password if password is not None else _no_password)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            "the key store has no PEM private key with its certificate, or ssl.key.password does "
            "not decrypt the key; check ssl.keystore.location"
        ) from None
    finally:
        Path(name).unlink()


def _no_password() -> str:
    raise ValueError("no password")


def _pem(
    properties: Properties, store: str, inline_key: str | None, *, inline: str | None = None
) -> str | None:
    """Return the PEM text of a store, inline or from its file; None if no store is given."""
    location = properties.get(f"ssl.{store}.location")
    kind = properties.get(f"ssl.{store}.type", "PEM").upper()
    if inline_key is not None:
        inline = properties.get(inline_key)
    if location is not None and inline is not None:
        raise ConfigError(f"the {store} is given as a file and inline; give only one of them")
    if location is None:
        return inline
    file_name = f"the file that ssl.{store}.location names"
    text = _bytes_of(Path(location), file_name).decode("ascii", errors="replace")
    if kind != "PEM" or "-----BEGIN" not in text:
        raise ConfigError(
            f"ssl.{store}.location is not a PEM file, or ssl.{store}.type is not PEM; convert it "
            f"(keytool -importkeystore to PKCS12, then openssl pkcs12) and set ssl.{store}.type=PEM"
        )
    return text


def _bytes_of(path: Path, file_name: str) -> bytes:
    """Return what is in a file, or comes through a pipe in time."""
    try:
        if path.is_fifo():
            raw = _through_pipe(path, file_name)
        else:
            with path.open("rb") as file:
                raw = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"{file_name} cannot be read: {error.strerror or error}") from None
    if len(raw) > FILE_LIMIT:
        raise ConfigError(f"{file_name} has more than {FILE_LIMIT} bytes; give a smaller file")
    return raw


def _through_pipe(path: Path, file_name: str) -> bytes:
    """Return what a writer sends until it closes the pipe."""
    raw, end_s = b"", time.monotonic() + _PIPE_S
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while len(raw) <= FILE_LIMIT:
            if not select.select([pipe], [], [], max(0.0, end_s - time.monotonic()))[0]:
                raise ConfigError(
                    f"{file_name} is a pipe, and nothing more came through it for {_PIPE_S:g} s; "
                    "start its writer first, or give a file"
                )
            piece = os.read(pipe, FILE_LIMIT + 1 - len(raw))
            if not piece:
                break
            raw += piece
        return raw
    finally:
        os.close(pipe)
