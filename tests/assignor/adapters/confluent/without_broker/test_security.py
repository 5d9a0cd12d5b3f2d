"""Security settings, which both clients have or none."""

import ssl
from pathlib import Path

import pytest

from assignor.adapters.confluent.security import security_settings
from tests.assignor.adapters.confluent.harness import refusal

CERTIFICATES = "tests/assignor/adapters/admin/certificates"


def test_passwords_reach_the_member():
    settings = security_settings(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "me",
            "sasl.password": "secret",
        }
    )
    assert settings == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
    }


def test_tokens_of_oauth_cb_reach_the_member():
    asked = []

    def tokens(config):
        asked.append(config)
        return "token", 1e12, "me", {"scope": "all"}

    provider = security_settings(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.config": "realm=x",
            "oauth_cb": tokens,
        }
    )["sasl_oauth_token_provider"]
    assert provider.token() == "token"
    assert provider.extensions() == {"scope": "all"}
    assert asked == ["realm=x"]


def test_kerberos_reaches_the_member():
    settings = security_settings(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "broker"}
    )
    assert settings["sasl_mechanism"] == "GSSAPI"
    assert settings["sasl_kerberos_service_name"] == "broker"


def test_certificates_become_a_context():
    context = security_settings(
        {
            "security.protocol": "ssl",
            "ssl.ca.location": f"{CERTIFICATES}/certificate.pem",
            "ssl.certificate.location": f"{CERTIFICATES}/certificate.pem",
            "ssl.key.location": f"{CERTIFICATES}/key.pem",
        }
    )["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    text = Path(CERTIFICATES, "certificate.pem").read_text(encoding="ascii")
    inline = security_settings({"security.protocol": "ssl", "ssl.ca.pem": text})
    assert len(inline["ssl_context"].get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("more", "mode", "checks_name"),
    [
        ({"ssl.endpoint.identification.algorithm": "none"}, ssl.CERT_REQUIRED, False),
        ({"enable.ssl.certificate.verification": "false"}, ssl.CERT_NONE, False),
    ],
)
def test_checks_that_are_turned_off_are_off_for_both(more, mode, checks_name):
    context = security_settings({"security.protocol": "ssl"} | more)["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (mode, checks_name)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ssl.keystore.location": "x"}, "ssl.keystore.location is not supported"),
        ({"ssl.key.pem": "secret"}, "ssl.key.pem is not supported"),
        ({"sasl.oauthbearer.method": "oidc"}, "sasl.oauthbearer.method is not supported"),
        ({"sasl.kerberos.keytab": "x"}, "sasl.kerberos.keytab is not supported"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "AWS"}, "'AWS' is not supported"),
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.password": "secret"},
            "sasl.username missing for sasl.mechanism=PLAIN",
        ),
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"},
            "needs oauth_cb",
        ),
        (
            {"security.protocol": "ssl", "ssl.ca.location": "/no/such/file"},
            "ssl.ca.location=/no/such/file does not exist; give the path of a PEM file",
        ),
        (
            {
                "security.protocol": "ssl",
                "ssl.certificate.location": f"{CERTIFICATES}/certificate.pem",
                "ssl.key.location": f"{CERTIFICATES}/key_with_password.pem",
            },
            "the certificates cannot be loaded (SSLError)",
        ),
    ],
)
def test_security_that_only_one_of_them_would_have_is_refused(more, why):
    sentence = refusal(lambda: security_settings(more))
    assert why in sentence
    assert "secret" not in sentence
