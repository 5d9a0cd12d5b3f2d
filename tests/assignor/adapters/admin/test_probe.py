"""Probing servers: addresses, TLS and logins; each failure is reported at once."""

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from assignor.adapters.servers import parse_servers, split_server
from system_tests.broker import running_broker
from tests.assignor.adapters.connections import listener, properties, run

PEM = Path(__file__).parent / "certificates"
UNSUPPORTED_MECHANISM = 33
SASL_AUTHENTICATION_FAILED = 58


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a:1", ("a", 1)),
        ("a", ("a", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
        ("::1", ("::1", 9092)),
        ("a:", None),
        ("a:b", None),
        (":1", None),
        ("a:0", None),
        ("a:65536", None),
        pytest.param("a:" + "9" * 5_000, None, id="5,000 digits"),
    ],
)
def test_a_server_is_a_host_and_a_port(text, found):
    assert split_server(text) == found


def test_servers_are_separated_by_commas():
    assert parse_servers(" a:1, b:2,") == ("a:1", "b:2")
    for wrong in ("", ",", "a:b,c:1"):
        with pytest.raises(ValueError, match="is not a server"):
            parse_servers(wrong)


@pytest.mark.usefixtures("clock")
def test_a_certificate_that_is_not_trusted_is_reported(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM / "certificate.pem", PEM / "key.pem")

    def shake_hands(connection):
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()

    file = properties(tmp_path, security_protocol="SSL")
    with listener(shake_hands) as server:
        done = run("--bootstrap-server", server, "--command-config", file, "--timeout", "60")
    assert done.exit_code == 3
    assert done.stderr.startswith(f"nodes: no broker can be reached: {server}: its certificate is")
    assert "not trusted: self-signed certificate" in done.stderr


@contextmanager
def tls_in_front_of(broker, context):
    """A TLS listener for an embedded broker of one node, which advertises its address."""

    def pump(source, sink):
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    inner = split_server(broker.bootstrap_servers[0])

    def serve(connection):
        try:
            secured = context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        plain = socket.create_connection(inner)
        held.extend((secured, plain))
        for pair in ((secured, plain), (plain, secured)):
            threading.Thread(target=pump, args=pair, daemon=True).start()

    held = []
    with listener(serve) as server:
        port = split_server(server)[1]
        broker.call(lambda server: server.cluster.address_by_node.update({1: ("localhost", port)}))
        yield f"localhost:{port}"
        for resource in held:
            resource.close()


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("is_mutual", [False, True])
def test_a_command_connects_by_tls_with_certificates_in_pem(tmp_path, is_mutual):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM / "certificate.pem", PEM / "key.pem")
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": PEM / "certificate.pem",
    }
    if is_mutual:
        context.load_verify_locations(PEM / "certificate.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        own = tmp_path / "own.pem"
        own.write_text(
            (PEM / "key.pem").read_text(encoding="utf-8")
            + (PEM / "certificate.pem").read_text(encoding="utf-8"),
            encoding="utf-8",
        )
        given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": own}
    file = properties(tmp_path, **given)
    with running_broker() as broker, tls_in_front_of(broker, context) as server:
        done = run("--bootstrap-server", server, "--command-config", file, "--timeout", "60")
    assert (done.exit_code, done.output) == (0, "broker 1\n")


@pytest.mark.usefixtures("clock")
def test_a_port_without_tls_is_reported(tmp_path):
    file = properties(tmp_path, security_protocol="SSL")
    with running_broker() as broker:
        server = broker.bootstrap_servers[0]
        done = run("--bootstrap-server", server, "--command-config", file, "--timeout", "60")
    assert done.exit_code == 3
    assert f"no broker can be reached: {server}: " in done.stderr


class Login:
    """A server that answers SASL requests only; like Kafka, it closes the connection on refusal."""

    def __init__(self, *, mechanisms=("PLAIN",), error=0, answers=(b"",), hangs_up=False):
        self.mechanisms, self.error, self.hangs_up = mechanisms, error, hangs_up
        self.answers = list(answers)
        self.tokens = []

    def __call__(self, connection):
        if self.hangs_up:
            connection.close()
            return
        asked = self.receive(connection, SaslHandshakeRequest, 1)
        if asked is None:
            return
        unsupported = 0 if asked.mechanism in self.mechanisms else UNSUPPORTED_MECHANISM
        handshake = SaslHandshakeResponse(error_code=unsupported, mechanisms=list(self.mechanisms))
        self.send(connection, handshake, 1, 1)
        for number, answer in enumerate(self.answers, 2):
            request = self.receive(connection, SaslAuthenticateRequest, 0)
            if request is None:
                return
            self.tokens.append(bytes(request.auth_bytes))
            response = SaslAuthenticateResponse(
                error_code=self.error, error_message="no", auth_bytes=answer
            )
            self.send(connection, response, 0, number)
        connection.close()

    def receive(self, connection, kind, version):
        head = connection.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return None
        data = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        return kind.decode(data, version=version, header=True)

    def send(self, connection, response, version, number):
        response.API_VERSION = version
        response.with_header(correlation_id=number)
        connection.sendall(response.encode(header=True, framed=True))


@pytest.fixture
def login(tmp_path):
    return properties(
        tmp_path,
        **{
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'a.PlainLoginModule required username="ann" password="secret";',
        },
    )


def log_in(server, file):
    return run("--bootstrap-server", server, "--command-config", file, "--timeout", "60")


@pytest.mark.usefixtures("clock")
def test_a_wrong_password_is_reported_at_once(login):
    refusing = Login(error=SASL_AUTHENTICATION_FAILED)
    with listener(refusing) as server:
        done = log_in(server, login)
    assert refusing.tokens == [b"ann\0ann\0secret"]
    assert done.exit_code == 1
    assert done.stderr == (
        f"nodes: every broker rejects the login: {server}: the user name or password is rejected "
        "(PLAIN); check sasl.jaas.config.\n"
    )


@pytest.mark.usefixtures("clock")
def test_a_server_that_hangs_up_at_the_login_is_taken_to_refuse_it(login):
    with listener(Login(answers=())) as server:
        done = log_in(server, login)
    assert done.exit_code == 1
    assert "the connection was closed during the login (PLAIN), as after a wrong" in done.stderr


@pytest.mark.usefixtures("clock")
def test_a_mechanism_that_is_not_enabled_is_reported_with_those_that_are(login):
    with listener(Login(mechanisms=("SCRAM-SHA-512", "GSSAPI"))) as server:
        done = log_in(server, login)
    assert done.exit_code == 1
    assert "PLAIN is not enabled (enabled: GSSAPI, SCRAM-SHA-512); check sasl.mechanism" in (
        done.stderr
    )


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("server", [Login(), Login(hangs_up=True)])
def test_what_the_trial_does_not_understand_is_left_to_the_client(login, server, monkeypatch):
    monkeypatch.setattr("assignor.adapters.admin.client.KafkaAdminClient", unanswered)
    with listener(server) as address:
        done = log_in(address, login)
    assert done.exit_code == 3
    assert "no broker answered within 60 s; check that its listener uses" in done.stderr


def unanswered(**_):
    """Fail as the client does when its time is over."""
    raise KafkaTimeoutError


@pytest.mark.usefixtures("clock")
def test_a_server_that_cannot_prove_that_it_knows_the_password_is_refused(tmp_path):
    file = properties(
        tmp_path,
        **{
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": 'a.ScramLoginModule required username="ann" password="secret";',
        },
    )
    with listener(Login(mechanisms=("SCRAM-SHA-256",), answers=(b"r=other,s=AAAA,i=4096",))) as at:
        done = log_in(at, file)
    assert done.exit_code == 1
    assert "its SCRAM-SHA-256 response is invalid" in done.stderr
