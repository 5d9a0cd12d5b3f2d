"""Settings of an `AIOKafkaConsumer`, as type checkers see them."""

from collections.abc import Callable
from typing import Any

from assignor.adapters.client_settings import CommonSettings


class ConsumerSettings(CommonSettings, total=False):
    """Settings that `streams_consumer` passes on; meanings and defaults are those of aiokafka.

    `streams_consumer` has parameters of its own for servers, group and assignors. A test compares
    the names with the signature of the locked release. A later aiokafka may have more: they are
    accepted, and type checkers do not know them.
    """

    key_deserializer: Callable[[Any], Any] | None
    value_deserializer: Callable[[Any], Any] | None
    rebalance_timeout_ms: int | None
    consumer_timeout_ms: int
    max_poll_records: int | None
    sasl_mechanism: str
    client_rack: str | None
