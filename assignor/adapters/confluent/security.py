"""librdkafka's security settings as kafka-python's; what has no counterpart is refused by name.

A setting that only one of the two clients had would leave the other one unprotected, or unable to
connect.
"""

import os.path
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from assignor.adapters.confluent.errors import refused
from encoding import shown

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_PREFIXES: Final = ("https.", "sasl.", "ssl.", "ssl_")
_SSL_FILES: Final = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
_TRANSLATED: Final = frozenset(
    {
        *_SSL_FILES,
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.config",
        "sasl.password",
        "sasl.username",
        "ssl.ca.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
    }
)
_FALSE: Final = frozenset({"false", "f", "0"})
_TOKEN: Final = 0


class CallbackTokens(AbstractTokenProvider):  # type: ignore[misc] # the client is untyped
    """Tokens of the application's `oauth_cb`, for kafka-python.

    Args:
        callback: `oauth_cb`; returns the token, its end, and optionally principal and extensions.
        config: `sasl.oauthbearer.config`, which it is called with.
    """

    def __init__(self, callback: Callable[[str], Any], config: str) -> None:
        super().__init__()
        self._callback = callback
        self._config = config
        self._extensions: dict[str, str] = {}

    def token(self) -> str:
        """Return a token; called when a connection authenticates."""
        answer = tuple(self._callback(self._config))
        self._extensions = dict(answer[3] or {}) if len(answer) > 3 else {}  # noqa: PLR2004 the fourth
        return str(answer[_TOKEN])

    def extensions(self) -> dict[str, str]:
        """Return the extensions that came with the token."""
        return self._extensions


def security_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return kafka-python's settings that secure connections as this configuration does.

    Raises:
        KafkaException: a setting has no counterpart, or a value is invalid; the error names it. No
            message shows a value that may be a secret.
    """
    for name in sorted(config):
        if name.startswith(_PREFIXES) and name not in _TRANSLATED:
            raise _invalid(
                f"{name} is not supported, since the group member's connections cannot have it; "
                f"supported are {', '.join(sorted(_TRANSLATED))}"
            )
    protocol = str(config.get("security.protocol", "plaintext")).upper()
    if protocol not in _PROTOCOLS:
        raise _invalid(
            f"security.protocol={shown(repr(config['security.protocol']))} is unknown; choose from "
            f"{', '.join(each.lower() for each in _PROTOCOLS)}"
        )
    settings: dict[str, Any] = {"security_protocol": protocol}
    if protocol.startswith("SASL"):
        settings |= _sasl(config)
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(config)
    return settings


def _sasl(config: Mapping[str, Any]) -> dict[str, Any]:
    mechanism = str(config.get("sasl.mechanisms") or config.get("sasl.mechanism") or "GSSAPI")
    if mechanism not in _MECHANISMS:
        raise _invalid(
            f"sasl.mechanism={shown(repr(mechanism))} is not supported; supported are "
            f"{', '.join(_MECHANISMS)}"
        )
    settings: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "GSSAPI":
        settings["sasl_kerberos_service_name"] = config.get("sasl.kerberos.service.name", "kafka")
    elif mechanism == "OAUTHBEARER":
        if not callable(config.get("oauth_cb")):
            raise _invalid(
                "sasl.mechanism=OAUTHBEARER needs oauth_cb here: both librdkafka and the group "
                "member call it; give it"
            )
        settings["sasl_oauth_token_provider"] = CallbackTokens(
            config["oauth_cb"], str(config.get("sasl.oauthbearer.config", ""))
        )
    else:
        missing = [key for key in ("sasl.username", "sasl.password") if not config.get(key)]
        if missing:
            raise _invalid(f"{' and '.join(missing)} missing for sasl.mechanism={mechanism}")
        settings["sasl_plain_username"] = str(config["sasl.username"])
        settings["sasl_plain_password"] = str(config["sasl.password"])
    return settings


def _ssl_context(config: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    algorithm = str(config.get("ssl.endpoint.identification.algorithm", "https")).lower()
    context.check_hostname = algorithm == "https"
    if str(config.get("enable.ssl.certificate.verification", True)).lower() in _FALSE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    for name in (*_SSL_FILES, "ssl.crl.location"):
        path = str(config.get(name) or "")
        if path not in ("", "probe") and not os.path.exists(path):  # noqa: PTH110 no error
            raise _invalid(f"{name}={shown(path)} does not exist; give the path of a PEM file")
    try:
        _load_trusted(context, config)
        if config.get("ssl.cipher.suites"):
            context.set_ciphers(str(config["ssl.cipher.suites"]))
        if config.get("ssl.certificate.location"):
            context.load_cert_chain(
                config["ssl.certificate.location"],
                keyfile=config.get("ssl.key.location"),
                # Without one openssl would prompt for a password.
                password=str(config.get("ssl.key.password", "")),
            )
    except (OSError, ValueError) as error:
        names = ", ".join(name for name in sorted(config) if name.startswith("ssl."))
        kind = type(error).__name__
        raise _invalid(
            f"the certificates cannot be loaded ({kind}); check {names}, in PEM format"
        ) from None
    return context


def _load_trusted(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    location, text = config.get("ssl.ca.location"), config.get("ssl.ca.pem")
    if location and str(location) != "probe":
        is_directory = Path(str(location)).is_dir()
        kind = "capath" if is_directory else "cafile"
        context.load_verify_locations(**{kind: str(location)})
    elif text:
        context.load_verify_locations(cadata=str(text))
    else:
        context.load_default_certs()
    if config.get("ssl.crl.location"):
        context.load_verify_locations(str(config["ssl.crl.location"]))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _invalid(sentence: str) -> Exception:
    return refused(KafkaError._INVALID_ARG, sentence)
