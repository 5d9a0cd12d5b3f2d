"""Connections of kafka-python's clients that fail while they are constructed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka.net.compat import KafkaNetClient


@contextmanager
def network_client(wrapped: Callable[..., Any] | None = None) -> Iterator[Callable[..., Any]]:
    """Yield a client's setting `kafka_client`; end the client's threads if the block raises.

    ```
    with network_client() as kafka_client:
        consumer = KafkaConsumer(**settings, kafka_client=kafka_client)
    ```

    The constructor of a kafka-python client starts a thread before it looks for a broker, and does
    not end it when it raises: that thread asks for metadata until the process ends.

    Args:
        wrapped: the application's own `kafka_client`.
    """
    made: list[Any] = []

    def keep(**settings: Any) -> Any:
        made.append((wrapped or KafkaNetClient)(**settings))
        return made[-1]

    try:
        yield keep
    except BaseException:
        for client in made:
            client.close()
        raise
