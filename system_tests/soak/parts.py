"""What a soak works with, built complete before its first member starts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from system_tests.live import GroupConfig, Members, Screen, WordProducer
from system_tests.soak.environment import SoakEnvironment, open_soak_environment
from system_tests.soak.options import SoakOptions
from system_tests.soak.tally import Written

_GRACE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakParts:
    """What a soak works with; complete before the first member starts.

    Attributes:
        environment: the broker and the topic.
        members: the member processes; none runs yet.
        producer: writes the records; not started yet.
        written: what the producer has written.
        rng: draws the process ids, and what a disturbance leaves open.
    """

    environment: SoakEnvironment
    members: Members
    producer: WordProducer
    written: Written
    rng: Random


@contextmanager
def open_soak_parts(options: SoakOptions, screen: Screen) -> Iterator[SoakParts]:
    """Provide the parts of one soak, and end them in reverse order.

    Raises:
        EnvironmentFailureError: no broker, or it refuses the topic.
    """
    rng = Random(options.seed)  # noqa: S311 an experiment is repeatable, not secret
    written = Written(options.partitions)
    with ExitStack() as stack:
        environment = stack.enter_context(open_soak_environment(options))
        names = environment.names
        members = Members(
            options.names,
            GroupConfig(
                bootstrap_servers=names.bootstrap_servers,
                group_id=names.group_id,
                topic=names.topic,
                session_timeout_ms=options.session_timeout_ms,
                heartbeat_ms=options.heartbeat_ms,
            ),
            client=options.client,
            screen=screen,
            rng=rng,
            stop_s=options.settle_timeout_s,
        )
        stack.callback(members.end, grace_s=_GRACE_S)
        producer = WordProducer(
            bootstrap_servers=names.bootstrap_servers,
            topic=names.topic,
            partitions=options.partitions,
            rate=options.rate,
            on_written=written.note,
        )
        stack.callback(producer.close)
        yield SoakParts(
            environment=environment, members=members, producer=producer, written=written, rng=rng
        )
