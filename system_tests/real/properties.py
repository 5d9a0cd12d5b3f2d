"""The settings of a real broker on loopback; the first node is the controller, too.

They are the same on 3.9 and 4.x.
"""

from collections.abc import Mapping
from pathlib import Path

_PROPERTIES = """\
process.roles={roles}
node.id={node_id}
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port}{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
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
_SECURED = """\
listeners=PLAINTEXT://{host}:{port},SASL_PLAINTEXT://{host}:{sasl_port}{controller}
advertised.listeners=PLAINTEXT://{host}:{port},SASL_PLAINTEXT://{host}:{sasl_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN listener.name.sasl_plaintext.plain.sasl.jaas.config={login} required
{users}; authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{first_user}
"""
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def server_properties(
    *,
    host: str,
    port: int,
    sasl_port: int,
    controller_port: int,
    data: Path,
    users: Mapping[str, str],
    node_id: int = 1,
) -> str:
    """Return the text of `server.properties`.

    Args:
        host: address of all listeners.
        port: for clients without a user name.
        sasl_port: for clients with a user name.
        controller_port: for brokers and for clients of the controller.
        data: folder of its logs.
        users: password by name; the first is authorized for everything, the others for nothing.
        node_id: 1 is the controller, too; any other is a broker only.
    """
    is_controller = node_id == 1
    template = _PROPERTIES + (_SECURED if users else "")
    return template.format(
        roles="broker,controller" if is_controller else "broker",
        node_id=node_id,
        controller=f",CONTROLLER://{host}:{controller_port}" if is_controller else "",
        host=host,
        port=port,
        sasl_port=sasl_port,
        controller_port=controller_port,
        data=data,
        login=_LOGIN,
        users=" ".join(f'user_{name}="{word}"' for name, word in users.items()),
        first_user=next(iter(users), ""),
    )
