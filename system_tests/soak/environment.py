"""The broker of a soak and what can be done to it: the embedded one of two nodes, or a real one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from system_tests.broker import BrokerConfig, RunningBroker, running_broker
from system_tests.live import World, topic_of
from system_tests.real import RealBroker, running_real_broker
from system_tests.soak.options import SoakOptions

_NODES = 2
# What is only looked at afterwards is kept short, and full long before the first quarter ends.
_KEPT = 500
_SEGMENT_BYTES = 1_048_576
_GROUP, _TOPIC = "soak", "words"


class Ground:
    """Where a soak takes place: one of the two brokers is not None.

    Attributes:
        world: names and addresses, as a live bounce has them.
        embedded: the embedded broker, in this process.
        real: a real one, in a process of its own.
    """

    def __init__(
        self, world: World, *, embedded: RunningBroker | None = None, real: RealBroker | None = None
    ) -> None:
        self.world = world
        self.embedded = embedded
        self.real = real

    @property
    def processes(self) -> tuple[tuple[str, int], ...]:
        """Who runs it, as (name, process id) pairs."""
        if self.real is None:
            return (("soak with its broker", os.getpid()),)
        own = (("soak", os.getpid()),)
        return own if self.real.pid is None else (*own, ("broker", self.real.pid))


@contextmanager
def open_ground(options: SoakOptions) -> Iterator[Ground]:
    """Provide a broker and a topic that keeps a few minutes of records.

    Raises:
        SurroundingsError: the broker cannot be had or started, or refuses the topic.
    """
    configs = {
        "retention.bytes": str(options.retention_bytes),
        "segment.bytes": str(_SEGMENT_BYTES),
    }
    if options.broker is None:
        config = BrokerConfig(nodes=_NODES, requests_kept=_KEPT, events_kept=_KEPT)
        with running_broker(config) as embedded:
            world = _world(",".join(embedded.bootstrap_servers))
            with topic_of(world, options.partitions, keep=True, configs=configs):
                pass
            yield Ground(world, embedded=embedded)
        return
    with running_real_broker(options.broker) as real:
        world = _world(real.bootstrap_servers)
        with topic_of(world, options.partitions, keep=True, configs=configs):
            pass
        yield Ground(world, real=real)


def _world(bootstrap_servers: str) -> World:
    return World(bootstrap_servers=bootstrap_servers, group_id=_GROUP, topic=_TOPIC)
