"""Java properties to settings: accepted and refused values, and the messages."""

import os
import ssl
import threading
from pathlib import Path

import pytest

from assignor.adapters.admin.properties import (
    FILE_LIMIT,
    KNOWN_KEYS,
    client_settings,
    jaas_login,
    read_properties,
)
from assignor.errors import ConfigError

PEM = Path(__file__).parent / "certificates"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def refusal(**properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    with pytest.raises(ConfigError) as refused:
        client_settings(given)
    return str(refused.value)


def test_a_properties_file_is_read_as_java_reads_it(tmp_path):
    file = tmp_path / "client.properties"
    file.write_bytes(
        b"# comment\n! another\nsecurity.protocol = SASL_SSL\nsasl.mechanism:SCRAM-SHA-512\n"
        b"sasl.jaas.config=a.ScramLoginModule required \\\n"
        b'   username="j\\u00e9" password="\xfc";\n'
    )
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'a.ScramLoginModule required username="jé" password="ü";',
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"x" * (FILE_LIMIT + 1), "has more than 1048576 bytes"),
        (b"key=\\u00g0", "is not a valid Java properties file"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_name(tmp_path, content, message):
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as refused:
        read_properties(file)
    assert str(file) in str(refused.value)


def test_without_any_property_the_protocol_is_plaintext():
    assert client_settings({}) == {"security_protocol": "PLAINTEXT"}


def test_numbers_and_names_are_handed_on():
    given = {
        "request.timeout.ms": "5000",
        "retry.backoff.ms": "50",
        "client.id": "me",
        "default.api.timeout.ms": "1000",
        "bootstrap.servers": "a:1",
    }
    assert client_settings(given) == {
        "security_protocol": "PLAINTEXT",
        "request_timeout_ms": 5000,
        "retry_backoff_ms": 50,
        "client_id": "me",
    }


def test_a_key_that_is_not_known_is_refused_with_the_nearest():
    assert refusal(sasl_mechanisms="PLAIN") == (
        "sasl.mechanisms is not supported; did you mean sasl.mechanism?"
    )
    far = refusal(zookeeper="yes")
    assert far.startswith("zookeeper is not supported; choose from bootstrap.servers")
    assert list(KNOWN_KEYS) == sorted(set(KNOWN_KEYS))


@pytest.mark.parametrize("value", ["0", "-5", "many", "", "99999999999", "٣"])
def test_a_number_that_is_none_is_refused(value):
    assert refusal(request_timeout_ms=value).startswith(f"request.timeout.ms is {value!r}")


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)],
)
def test_user_and_password_come_from_the_jaas_entry(protocol, mechanism, module):
    settings = client_settings(
        {
            "security.protocol": protocol,
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="ann" password="p;#=\\" x";',
        }
    )
    login = {"sasl_plain_username": "ann", "sasl_plain_password": 'p;#=" x'}
    assert settings.items() >= (login | {"sasl_mechanism": mechanism}).items()
    assert ("ssl_context" in settings) == (protocol == "SASL_SSL")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one entry that ends with a semicolon"),
        (f'{PLAIN} required username="ann" password="secret"', "ends with a semicolon"),
        (f'{PLAIN} required username="ann password="secret";', "a quote is not closed"),
        (f'{SCRAM} required username="ann" password="secret";', "it names ScramLoginModule"),
        (f'{PLAIN} required username="ann";', "password missing"),
        (f"{PLAIN} required;", "username and password missing"),
        (f"{PLAIN} required a=b; {PLAIN} required c=d;", "one entry"),
    ],
)
def test_a_jaas_entry_that_is_none_is_refused_without_its_secrets(text, message):
    with pytest.raises(ConfigError, match=message) as refused:
        jaas_login(text, "PLAIN")
    assert "secret" not in str(refused.value)


def test_sasl_and_ssl_settings_need_their_protocol():
    assert "security.protocol is PLAINTEXT" in refusal(sasl_mechanism="PLAIN")
    assert "security.protocol is PLAINTEXT" in refusal(ssl_truststore_type="PEM")
    assert "Kafka's default GSSAPI" in refusal(security_protocol="SASL_SSL")
    assert "supported are PLAIN, SCRAM" in refusal(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER"
    )
    assert "supported are PLAINTEXT, SSL" in refusal(security_protocol="TLS")


def ssl_context(**properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return client_settings({"security.protocol": "SSL", **given})["ssl_context"]


@pytest.mark.parametrize("is_inline", [True, False])
def test_trusted_certificates_come_from_a_file_or_from_the_properties(is_inline):
    file = PEM / "certificate.pem"
    given = (
        {"ssl_truststore_certificates": file.read_text(encoding="utf-8")}
        if is_inline
        else {"ssl_truststore_location": str(file), "ssl_truststore_type": "PEM"}
    )
    context = ssl_context(**given)
    assert [certificate["subject"] for certificate in context.get_ca_certs()] == [
        ((("commonName", "localhost"),),)
    ]
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_host_is_not_checked_where_the_algorithm_is_empty():
    assert not ssl_context(ssl_endpoint_identification_algorithm="").check_hostname
    assert "give https" in refusal(
        security_protocol="SSL", ssl_endpoint_identification_algorithm="ldap"
    )


def test_tls_versions_are_limited_to_those_named():
    context = ssl_context(ssl_enabled_protocols="TLSv1.3")
    assert context.minimum_version is context.maximum_version is ssl.TLSVersion.TLSv1_3
    assert "supported are TLSv1.2, TLSv1.3" in refusal(
        security_protocol="SSL", ssl_enabled_protocols="TLSv1.1,TLSv1.2"
    )


def test_the_clients_own_certificate_is_loaded_from_a_file_or_from_the_properties(tmp_path):
    certificate, key = (
        (PEM / f"{name}.pem").read_text(encoding="utf-8") for name in ("certificate", "key")
    )
    both = tmp_path / "own.pem"
    both.write_text(key + certificate, encoding="utf-8")
    ssl_context(ssl_keystore_location=str(both), ssl_keystore_type="PEM")
    ssl_context(ssl_keystore_certificate_chain=certificate, ssl_keystore_key=key)
    locked = (PEM / "key_with_password.pem").read_text(encoding="utf-8")
    store = {"ssl_keystore_certificate_chain": certificate, "ssl_keystore_key": locked}
    right = {"ssl_key_password": "opens"}
    ssl_context(**store, **right)
    for wrong in ({}, {"ssl_key_password": "wrong"}):
        assert "ssl.key.password does not decrypt the key" in refusal(
            security_protocol="SSL", **store, **wrong
        )


def test_java_key_stores_are_refused_with_the_way_to_convert_them(tmp_path):
    store = tmp_path / "trust.jks"
    store.write_bytes(bytes.fromhex("feedfeed"))
    for properties in (
        {"ssl_truststore_location": str(store)},
        {"ssl_truststore_location": str(store), "ssl_truststore_type": "JKS"},
        {"ssl_truststore_password": "changeit"},
    ):
        message = refusal(security_protocol="SSL", **properties)
        assert "keytool -importkeystore" in message
        assert "changeit" not in message


def test_stores_that_contradict_themselves_are_refused(tmp_path):
    file = str(PEM / "certificate.pem")
    assert "give only one of them" in refusal(
        security_protocol="SSL", ssl_truststore_location=file, ssl_truststore_certificates="x"
    )
    assert "go together" in refusal(security_protocol="SSL", ssl_keystore_key="x")
    assert "no PEM certificate" in refusal(
        security_protocol="SSL", ssl_truststore_certificates="nothing"
    )
    assert "cannot be read" in refusal(
        security_protocol="SSL", ssl_truststore_location=str(tmp_path / "none.pem")
    )


# Secrets

SECRET = "hunter2"  # noqa: S105 not a real one
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": SECRET},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": SECRET},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": f"PLAIN password={SECRET}"},
        SASL | {"sasl.jaas.config": SECRET},
        SASL | {"sasl.jaas.config": f"{SECRET} required;"},
        SASL | {"sasl.jaas.config": f'{SECRET} required username="a" password="b";'},
        SASL | {"sasl.jass.config": f'{PLAIN} required username="a" password="{SECRET}";'},
        {"zookeeper.token": SECRET},
        {"security.protocol": "SSL", "ssl.enabled.protocols": SECRET},
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": SECRET},
        {
            "security.protocol": "SSL",
            "ssl.keystore.type": SECRET,
            "ssl.keystore.location": __file__,
        },
        {"security.protocol": "SSL", "ssl.keystore.location": f"/none/{SECRET}"},
        {"security.protocol": "SSL", "ssl.truststore.password": SECRET},
        {"security.protocol": "SSL", "ssl.keystore.key": SECRET},
        {"security.protocol": "SSL", "ssl.truststore.certificates": SECRET},
    ],
)
def test_an_error_names_the_setting_and_no_secret(properties):
    with pytest.raises(ConfigError) as refused:
        client_settings(properties)
    message = str(refused.value)
    assert SECRET not in message.lower()
    assert any(key in message for key in (*properties, "trust store", "sasl.jaas.config"))
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_the_error_for_a_value_names_the_allowed_ones():
    protocols = "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
    assert refusal(security_protocol=SECRET) == (
        f"security.protocol has a value that is not supported; supported are {protocols}"
    )
    assert "supported are PLAIN, SCRAM-SHA-256" in refusal(
        security_protocol="SASL_SSL", sasl_mechanism=SECRET
    )


def test_a_broken_escape_is_refused_without_the_line(tmp_path):
    file = tmp_path / "client.properties"
    file.write_bytes(f"sasl.jaas.config=a password=\\u{SECRET[:2]}g0".encode())
    with pytest.raises(ConfigError, match="is not a valid Java properties file") as refused:
        read_properties(file)
    assert SECRET[:2] not in str(refused.value).removeprefix(str(file))


@pytest.mark.parametrize("key", ["x\n2026 ERROR", "\x1b[2J", "k" * 5_000])
def test_a_key_that_is_not_known_is_shown_on_one_line(key):
    with pytest.raises(ConfigError, match="is not supported; ") as refused:
        client_settings({key: SECRET})
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1_500


@pytest.mark.parametrize("value", ["9" * 5_000, "\x1b[2J"])
def test_a_number_of_any_length_is_refused_in_a_short_sentence(value):
    message = refusal(request_timeout_ms=value)
    assert message.startswith("request.timeout.ms is ")
    assert message.isprintable()
    assert len(message) < 400


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of POSIX")
@pytest.mark.usefixtures("clock")
def test_a_pipe_is_read_as_its_writer_writes_and_not_waited_for_without_end(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with pipe.open("w", encoding="utf-8") as file:
            for line in ("client.id=one\n", "bootstrap.servers=b:1\n"):
                file.write(line)
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    assert read_properties(pipe) == {"client.id": "one", "bootstrap.servers": "b:1"}
    writer.join()
    monkeypatch.setattr("assignor.adapters.admin.properties._PIPE_S", 0.1)
    with pytest.raises(ConfigError, match="is a pipe, and nothing more came"):
        read_properties(pipe)
