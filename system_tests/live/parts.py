"""What an experiment works with, built complete before its first member starts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from system_tests.live.environment import Environment, open_environment
from system_tests.live.members.config import GroupConfig
from system_tests.live.options import LiveOptions
from system_tests.live.order import member_names
from system_tests.live.processes import Members, Screen
from system_tests.live.producer import WordProducer

_GRACE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an experiment works with; complete before the first member starts.

    Attributes:
        environment: the broker and the topic.
        members: the member processes; none runs yet.
        producer: writes the records; not started yet.
        rng: the only random generator.
    """

    environment: Environment
    members: Members
    producer: WordProducer
    rng: Random


@contextmanager
def open_parts(options: LiveOptions, screen: Screen) -> Iterator[Parts]:
    """Provide the parts of one experiment, and end them in reverse order.

    Raises:
        EnvironmentFailureError: no broker, a port in use, a topic that cannot be created.
    """
    rng = Random(options.seed)  # noqa: S311 an experiment is repeatable, not secret
    with ExitStack() as stack:
        environment = stack.enter_context(open_environment(options))
        members = Members(
            member_names(options.members),
            GroupConfig(
                bootstrap_servers=environment.bootstrap_servers,
                group_id=environment.group_id,
                topic=environment.topic,
                session_timeout_ms=options.session_timeout_ms,
                heartbeat_ms=options.heartbeat_ms,
                static=options.switches.static,
                supervised=options.replace_brokers,
                hold_back=options.hold_back,
            ),
            client=options.client,
            screen=screen,
            rng=rng,
            stop_s=options.settle_timeout_s,
        )
        stack.callback(members.end, grace_s=_GRACE_S)
        producer = WordProducer(
            bootstrap_servers=environment.bootstrap_servers,
            topic=environment.topic,
            partitions=options.partitions,
            rate=options.rate,
            supervised=options.replace_brokers,
        )
        stack.callback(producer.close)
        yield Parts(environment=environment, members=members, producer=producer, rng=rng)
