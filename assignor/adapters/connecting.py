"""Connections of kafka-python's clients that fail, or are given up, while they are constructed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaError
from kafka.net.compat import KafkaNetClient


class NetworkClient:
    """A client's setting `kafka_client`, which can end what the constructor has started.

    Args:
        wrapped: the application's own `kafka_client`.
    """

    def __init__(self, wrapped: Callable[..., Any] | None = None) -> None:
        self._wrapped = wrapped or KafkaNetClient
        self._made: list[Any] = []
        self._is_given_up = False

    def __call__(self, **settings: Any) -> Any:
        """Return a network client, as kafka-python's constructors call it."""
        self._made.append(self._wrapped(**settings))
        if self._is_given_up:
            raise KafkaConnectionError("closed while it connects")
        return self._made[-1]

    def give_up(self) -> None:
        """Have a constructor that waits for a broker raise; any thread may call it."""
        self._is_given_up = True
        for client in self._made:
            with suppress(KafkaError, RuntimeError):  # its event loop has ended
                client._manager._net.call_soon_threadsafe(client._manager.close)

    def close(self) -> None:
        """End the threads, after a constructor has raised."""
        for client in self._made:
            client.close()


@contextmanager
def network_client(wrapped: Callable[..., Any] | None = None) -> Iterator[NetworkClient]:
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
    made = NetworkClient(wrapped)
    try:
        yield made
    except BaseException:
        made.close()
        raise
