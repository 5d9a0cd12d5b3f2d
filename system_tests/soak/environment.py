"""The broker of a soak: the embedded one of two nodes, or a real one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from system_tests.broker import BrokerConfig, RunningBroker, running_broker
from system_tests.live import Environment, topic_of
from system_tests.real import RealBroker, running_real_broker
from system_tests.soak.options import SoakOptions

_NODES = 2
# Short logs of requests and events: full before the first quarter of the soak ends.
_KEPT = 500
_SEGMENT_BYTES = 1_048_576
_GROUP, _TOPIC = "soak", "words"


class SoakEnvironment:
    """The broker and the topic of a soak: one of `embedded` and `real` is not None.

    Attributes:
        names: address, group and topic, as a live bounce has them.
        embedded: the embedded broker, in this process.
        real: a real one, in a process of its own.
    """

    def __init__(
        self,
        names: Environment,
        *,
        embedded: RunningBroker | None = None,
        real: RealBroker | None = None,
    ) -> None:
        self.names = names
        self.embedded = embedded
        self.real = real

    @property
    def processes(self) -> tuple[tuple[str, int], ...]:
        """Processes that the soak and its broker run in, as (name, process id) pairs."""
        if self.real is None:
            return (("soak with its broker", os.getpid()),)
        own = (("soak", os.getpid()),)
        return own if self.real.pid is None else (*own, ("broker", self.real.pid))


@contextmanager
def open_soak_environment(options: SoakOptions) -> Iterator[SoakEnvironment]:
    """Provide a broker and a topic that keeps a few minutes of records.

    Raises:
        EnvironmentFailureError: the broker is not available, does not start, or refuses the topic.
    """
    configs = {
        "retention.bytes": str(options.retention_bytes),
        "segment.bytes": str(_SEGMENT_BYTES),
    }
    if options.broker is None:
        config = BrokerConfig(nodes=_NODES, requests_kept=_KEPT, events_kept=_KEPT)
        with running_broker(config) as embedded:
            names = _names(",".join(embedded.bootstrap_servers))
            with topic_of(names, options.partitions, keep=True, configs=configs):
                pass
            yield SoakEnvironment(names, embedded=embedded)
        return
    with running_real_broker(options.broker) as real:
        names = _names(real.bootstrap_servers)
        with topic_of(names, options.partitions, keep=True, configs=configs):
            pass
        yield SoakEnvironment(names, real=real)


def _names(bootstrap_servers: str) -> Environment:
    return Environment(bootstrap_servers=bootstrap_servers, group_id=_GROUP, topic=_TOPIC)
