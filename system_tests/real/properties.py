"""The settings of a real broker on loopback; the first node is the controller, too.

They are the same on 3.9 and 4.x.
"""

from collections.abc import Mapping
from pathlib import Path

MECHANISMS = ("PLAIN", "SCRAM-SHA-512")
"""Of listeners with users; passwords for SCRAM are stored by an admin client."""
CERTIFIED = "CN=localhost"
"""Name of the client in the certificate that tests use."""
_PROPERTIES = """\
process.roles={roles}
node.id={node_id}
controller.quorum.voters=1@{host}:{controller_port}
listeners={listeners}{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=4194304
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
"""
# Brokers use the plain listener, where all clients are anonymous and authorized for everything.
_AUTHORIZER = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{certified};User:{first_user}
sasl.enabled.mechanisms={mechanisms}
"""
_PLAIN = "listener.name.{name}.plain.sasl.jaas.config={module} required {users};\n"
_SCRAM = "listener.name.{name}.scram-sha-512.sasl.jaas.config={module} required;\n"
_KEY_STORE = """\
ssl.keystore.type=PEM
ssl.keystore.location={file}
ssl.truststore.type=PEM
ssl.truststore.location={file}
listener.name.ssl.ssl.client.auth=required
"""
_MODULES = "org.apache.kafka.common.security"


def secured_protocols(*, has_users: bool, has_keys: bool) -> tuple[str, ...]:
    """Return the security protocols of the listeners beside the plain one."""
    listeners = {"SASL_PLAINTEXT": has_users, "SSL": has_keys, "SASL_SSL": has_users and has_keys}
    return tuple(name for name, is_there in listeners.items() if is_there)


def server_properties(
    *,
    host: str,
    ports: Mapping[str, int],
    controller_port: int,
    data: Path,
    users: Mapping[str, str],
    key_store: Path | None = None,
    node_id: int = 1,
) -> str:
    """Return the text of `server.properties`.

    Args:
        host: address of all listeners.
        ports: of the listeners for clients, by security protocol; with `PLAINTEXT`.
        controller_port: for brokers and for clients of the controller.
        data: folder of its logs.
        users: password by name; the first is authorized for everything, the others for nothing.
        key_store: PEM file with the broker's key and certificate. The listener `SSL` accepts only
            clients with that certificate, and authorizes them for everything.
        node_id: 1 is the controller, too; any other is a broker only.
    """
    is_controller = node_id == 1
    listeners = ",".join(f"{name}://{host}:{port}" for name, port in ports.items())
    protocols = ",".join(f"{name}:{name}" for name in ports)
    text = _PROPERTIES.format(
        roles="broker,controller" if is_controller else "broker",
        node_id=node_id,
        controller=f",CONTROLLER://{host}:{controller_port}" if is_controller else "",
        host=host,
        listeners=listeners,
        protocols=protocols,
        controller_port=controller_port,
        data=data,
    )
    if users:
        text += _AUTHORIZER.format(
            certified=CERTIFIED, first_user=next(iter(users)), mechanisms=",".join(MECHANISMS)
        )
        words = " ".join(f'user_{name}="{word}"' for name, word in users.items())
        for name in (each.lower() for each in ports if each.startswith("SASL")):
            text += _PLAIN.format(
                name=name, module=f"{_MODULES}.plain.PlainLoginModule", users=words
            )
            text += _SCRAM.format(name=name, module=f"{_MODULES}.scram.ScramLoginModule")
    return text + (_KEY_STORE.format(file=key_store) if key_store else "")
